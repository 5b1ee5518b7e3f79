//go:build race

package bplus

import (
	"runtime"
	"unsafe"
)

// The race detector does not see what happens off the Go heap. So writers and
// readers of a key tell it that all writes before a key is set happen before
// another goroutine finds the key.

func released[C Code](t *Tree[C], key C) {
	runtime.RaceReleaseMerge(unsafe.Pointer(&t.counts[uint64(key)%stripes]))
}

func acquired[C Code](t *Tree[C], key C) {
	runtime.RaceAcquire(unsafe.Pointer(&t.counts[uint64(key)%stripes]))
}

func acquiredEach[C Code](t *Tree[C], keys []C) {
	for _, key := range keys {
		acquired(t, key)
	}
}

func releasedAll[C Code](t *Tree[C]) {
	for i := range t.counts {
		runtime.RaceReleaseMerge(unsafe.Pointer(&t.counts[i]))
	}
}

func acquiredAll[C Code](t *Tree[C]) {
	for i := range t.counts {
		runtime.RaceAcquire(unsafe.Pointer(&t.counts[i]))
	}
}
