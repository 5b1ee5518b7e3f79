package radix

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
)

// A writer works at a desk, which has the memory that a writer needs at hand, so that
// writers at different desks share nothing but the nodes that they change. There are
// as many desks as writers that have met. A goroutine that needs the tree without any
// writer takes all desks.

// desk is where one writer at a time works.
type desk struct {
	mu sync.Mutex
	writer
	_ [64]byte // of its own cache lines
}

// writer is the state that a writer has to itself.
type writer struct {
	t       *Tree
	began   atomic.Uint64 // generation in which it has come: nodes that it can meet are not reused before it goes
	entries atomic.Int64  // keys that it has added, less those that it has deleted
	look    int64         // changes until it looks whether shortcuts are due
	steps   []step        // the way to the key that is being changed
	alone   bool          // all desks are the caller's
	free    bool          // the limit does not bind
	prepaid bool          // memory was promised

	stock *stock // memory at hand

	limbo epoch.Limbo // nodes that it has retired
	dead  epoch.List  // no longer part of the tree, but of the newest snapshot
	fork  ownFork
	late  []func() // steps that mutants do too late
}

// mostDesks returns how many desks a tree has at most: a writer that the scheduler
// has stopped keeps its desk.
func mostDesks() int {
	if !epoch.Optimistic {
		return 1
	}
	return 2 * runtime.GOMAXPROCS(0)
}

// home returns the number of the desk where a goroutine looks first, of n.
func home(n int) int {
	var here byte
	at := uint64(uintptr(unsafe.Pointer(&here))) >> 11 // stacks have 2 KiB at least
	return int(at * 0x9e3779b97f4a7c15 >> 32 % uint64(n))
}

// enter makes the caller a writer.
func (t *Tree) enter() *desk {
	all := *t.desks.Load()
	d := all[0]
	if len(all) > 1 {
		d = all[home(len(all))]
	}
	if !d.mu.TryLock() {
		d = t.enterBusy(d)
	}
	t.rw.Lock()
	if gen := t.Gen(); d.began.Load() != gen {
		d.began.Store(gen)
	}
	return d
}

// enterBusy is enter where another writer works at desk d.
func (t *Tree) enterBusy(d *desk) *desk {
	all := *t.desks.Load()
	for _, other := range all {
		if other.mu.TryLock() {
			return other
		}
	}
	if len(all) < mostDesks() && t.mu.TryLock() {
		defer t.mu.Unlock()
		return t.addDesk()
	}
	d.mu.Lock()
	return d
}

// addDesk adds a desk, which is the caller's. The caller has the lock of desks.
func (t *Tree) addDesk() *desk {
	d := &desk{writer: writer{t: t}}
	d.mu.Lock()
	var all []*desk
	if old := t.desks.Load(); old != nil {
		all = *old
	}
	all = append(all[:len(all):len(all)], d)
	t.desks.Store(&all)
	return d
}

// leave frees the desk that enter took.
func (t *Tree) leave(d *desk) {
	if t.rise(d) {
		t.renewLater()
	}
}

// rise is leave for a caller that makes new shortcuts if due, which says that it is time for
// them.
func (t *Tree) rise(d *desk) (due bool) {
	d.rest()
	if d.look <= 0 {
		d.look, due = t.untilShort()
	}
	t.rw.Unlock()
	d.mu.Unlock()
	return due
}

// lockWrite takes all desks. The writer that it returns is the only one.
func (t *Tree) lockWrite() *writer {
	t.mu.Lock()
	all := *t.desks.Load()
	for _, d := range all {
		d.mu.Lock()
		d.alone = true
		d.began.Store(t.Gen())
	}
	t.rw.Lock()
	t.gatherKept()
	return &all[0].writer
}

func (t *Tree) unlockWrite() {
	t.rw.Unlock()
	for _, d := range *t.desks.Load() {
		d.alone = false
		d.mu.Unlock()
	}
	t.mu.Unlock()
}

// gatherKept adds the writers' notes for the newest snapshot to it.
func (t *Tree) gatherKept() {
	m := t.newest()
	for _, d := range *t.desks.Load() {
		if m != nil {
			m.dead.Take(&d.dead)
		}
	}
}

// writers returns n writers. The caller has all desks.
func (t *Tree) writers(n int) []*writer {
	for len(*t.desks.Load()) < min(n, mostDesks()) {
		d := t.addDesk()
		d.alone = true
		d.began.Store(t.Gen())
	}
	var ws []*writer
	for _, d := range *t.desks.Load() {
		if len(ws) < n {
			ws = append(ws, &d.writer)
		}
	}
	return ws
}

// Len returns the number of entries. It is exact if no writer runs meanwhile.
func (t *Tree) Len() int {
	if t.Closed() {
		return 0
	}
	return int(max(t.entries(), 0))
}

// entries adds up the counts of all writers.
func (t *Tree) entries() (n int64) {
	for _, d := range *t.desks.Load() {
		n += d.entries.Load()
	}
	return n
}

// addEntries adds to the writer's own count, which no other writer changes: where a plain
// store is seen whole, no atomic one that empties the store buffer is needed.
func (w *writer) addEntries(delta int64) {
	if n := w.entries.Load() + delta; epoch.Optimistic && !epoch.RaceOn {
		setValue((*uint64)(unsafe.Pointer(&w.entries)), uint64(n))
	} else {
		w.entries.Store(n)
	}
}

// counted notes that keys were added.
func (w *writer) counted(delta int64) {
	if w.t.forked {
		w.fork.entries += delta
		return
	}
	w.addEntries(delta)
	w.look -= max(delta, -delta)
}
