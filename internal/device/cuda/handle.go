//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"io"
	"sync"
)

// handle is a driver object that must not be destroyed while calls use it.
//
// Only destroy locks for writing, so a TryRLock that fails means that
// destruction has begun. Since holders never wait, calls that hold several
// handles cannot deadlock with their destruction.
type handle struct {
	mu    sync.RWMutex
	value uintptr // 0 once destroyed
}

// hold returns the value and keeps it alive until release.
func (h *handle) hold() (uintptr, error) {
	if !h.mu.TryRLock() {
		return 0, errClosed
	}
	if h.value == 0 {
		h.mu.RUnlock()
		return 0, errClosed
	}
	return h.value, nil
}

func (h *handle) release() { h.mu.RUnlock() }

// destroy waits for the holders and calls end with the value, once. A second
// destroy waits for the first to finish.
func (h *handle) destroy(end func(uintptr) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.value == 0 {
		return nil
	}
	err := end(h.value)
	h.value = 0
	return err
}

// block is a piece of memory: its address, and the function that frees it.
type block struct {
	freedBy entry
	address uintptr
}

// ledger records the blocks that a device has to free. The zero ledger is empty.
type ledger struct {
	mu      sync.Mutex
	objects map[io.Closer]struct{} // streams, events, modules, ranges, graphs: they remove themselves
	blocks  map[block]int          // with their sizes in bytes
}

func (l *ledger) addObject(o io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects == nil {
		l.objects = map[io.Closer]struct{}{}
	}
	l.objects[o] = struct{}{}
}

func (l *ledger) removeObject(o io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, o)
}

func (l *ledger) addBlock(b block, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocks == nil {
		l.blocks = map[block]int{}
	}
	l.blocks[b] = bytes
}

// pinned reports whether all of b is page-locked host memory of the ledger.
func (l *ledger) pinned(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := start(b)
	for block, bytes := range l.blocks {
		if block.freedBy != cuMemFree && block.address <= from && from+uintptr(len(b)) <= block.address+uintptr(bytes) {
			return true
		}
	}
	return false
}

// takeBlock removes a block and reports whether it was there. The caller that
// takes a block frees it, so nothing is freed twice.
func (l *ledger) takeBlock(b block) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.blocks[b]
	delete(l.blocks, b)
	return ok
}

// all returns the contents of the ledger, which must not be used again.
func (l *ledger) all() (objects []io.Closer, blocks []block) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for o := range l.objects {
		objects = append(objects, o)
	}
	for b := range l.blocks {
		blocks = append(blocks, b)
	}
	return objects, blocks
}
