package epoch

import (
	"runtime"
	"sync"
)

// Lock guards a tree whose readers are not optimistic. Elsewhere it does nothing.
type Lock struct{ rw sync.RWMutex }

// RLock comes before the tree is read.
func (l *Lock) RLock() {
	if !Optimistic {
		l.rw.RLock()
	}
}

// RUnlock undoes RLock.
func (l *Lock) RUnlock() {
	if !Optimistic {
		l.rw.RUnlock()
	}
}

// Lock comes before the tree is changed.
func (l *Lock) Lock() {
	if !Optimistic {
		l.rw.Lock()
	}
}

// Unlock undoes Lock.
func (l *Lock) Unlock() {
	if !Optimistic {
		l.rw.Unlock()
	}
}

// Hold keeps memory from being given back: a tree and its snapshots have it, and when none of them
// is left the memory is released.
type Hold struct{ release func() }

// NewHold returns a Hold. release must not refer to those that have it.
func NewHold(release func()) *Hold {
	h := &Hold{release}
	runtime.AddCleanup(h, func(release func()) { release() }, release)
	return h
}
