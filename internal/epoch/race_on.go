//go:build race

package epoch

import (
	"runtime"
	"unsafe"
)

// RaceOn reports whether the race detector is on.
const RaceOn = true

// Edges tells the race detector of a tree's changes. It does not see what happens off the Go heap.
// So writers and readers of a key tell it that all writes before a key is set happen before
// another goroutine finds the key. Places stand for keys, as few as 16.
type Edges [16]uint64

func (e *Edges) at(key uint64) unsafe.Pointer { return unsafe.Pointer(&e[key%uint64(len(e))]) }

// Release comes before a key is set.
func (e *Edges) Release(key uint64) { runtime.RaceReleaseMerge(e.at(key)) }

// Acquire comes after a key was found.
func (e *Edges) Acquire(key uint64) { runtime.RaceAcquire(e.at(key)) }

// ReleaseAll is Release for all keys.
func (e *Edges) ReleaseAll() {
	for i := range e {
		e.Release(uint64(i))
	}
}

// AcquireAll is Acquire for all keys.
func (e *Edges) AcquireAll() {
	for i := range e {
		e.Acquire(uint64(i))
	}
}

// ReleaseString is Release for a key that is a string.
func (e *Edges) ReleaseString(key string) { e.Release(hash(key)) }

// AcquireString is Acquire for a key that is a string.
func (e *Edges) AcquireString(key string) { e.Acquire(hash(key)) }

func hash(key string) uint64 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return uint64(h)
}
