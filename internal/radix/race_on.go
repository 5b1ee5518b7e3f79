//go:build race

package radix

import (
	"runtime"
	"unsafe"
)

const raceOn = true

// The race detector does not see what happens off the Go heap. So writers and
// readers of a key tell it that all writes before a key is set happen before
// another goroutine finds the key.

// edges has places that stand for keys, as few as 16.
type edges [16]uint64

func newEdges() *edges { return new(edges) }

// edge returns the address that stands for a key.
func edge(t *Tree, key string) unsafe.Pointer {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return unsafe.Pointer(&t.edges[h%uint32(len(t.edges))])
}

func released(t *Tree, key string) { runtime.RaceReleaseMerge(edge(t, key)) }

func acquired(t *Tree, key string) { runtime.RaceAcquire(edge(t, key)) }

func releasedAll(t *Tree) {
	for i := range t.edges {
		runtime.RaceReleaseMerge(unsafe.Pointer(&t.edges[i]))
	}
}

func acquiredAll(t *Tree) {
	for i := range t.edges {
		runtime.RaceAcquire(unsafe.Pointer(&t.edges[i]))
	}
}
