package radix

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
)

// A snapshot is the root of the tree at the end of an epoch; taking one begins the
// next epoch. From then on a writer that is to change a node which was made before
// copies it, and the nodes above it, so that the snapshot keeps what it has.
//
// What is no longer part of the tree but of snapshots is noted with the newest of
// them. When that is closed, what the next older one does not have is free.

// moment is the state of a tree at the end of an epoch.
type moment struct {
	epoch   uint64
	age     uint32 // what has it or less was there
	root    link
	entries int64
	dead    []keptNode  // no longer part of the tree
	vals    []keptValue // likewise
	closed  bool
}

// keptNode is a node and its age.
type keptNode struct {
	node link
	age  uint32
}

// keptValue is a value that stands for memory of the caller's, and the epoch in
// which it was put in.
type keptValue struct{ val, born uint64 }

// Snapshot is a tree as it was at one moment. It is closed when nobody needs it
// any more, by hand or by the garbage collector.
type Snapshot struct {
	tree   *Tree
	hold   *hold
	moment *moment
	closed atomic.Bool
}

// Snapshot returns the tree of this moment.
func (t *Tree) Snapshot() (*Snapshot, error) {
	t.batch.Lock()
	defer t.batch.Unlock()
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return nil, ErrClosed
	}
	if len(t.moments) >= int(ageHalf/2) {
		return nil, fmt.Errorf("%w: %d snapshots are open", ErrLimit, len(t.moments))
	}
	m := &moment{epoch: t.Epoch(), age: t.age, root: t.top.link, entries: t.entries()}
	t.moments = append(t.moments, m)
	t.nextAge()
	t.thaw()
	acquiredAll(t)
	s := &Snapshot{tree: t, hold: t.hold, moment: m}
	runtime.AddCleanup(s, t.end, m)
	return s, nil
}

// thaw sets which nodes may be changed: those that no snapshot has.
func (t *Tree) thaw() {
	t.frozen = 0
	if m := t.newest(); m != nil {
		t.frozen = m.age
	}
}

// newest returns the newest snapshot, or nil.
func (t *Tree) newest() *moment {
	if n := len(t.moments); n > 0 {
		return t.moments[n-1]
	}
	return nil
}

// Close gives back what was kept for the snapshot alone.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.tree.end(s.moment)
	}
}

// end closes a snapshot: what it has goes to the next older one, or is free.
func (t *Tree) end(m *moment) {
	w := t.lockWrite()
	defer t.unlockWrite()
	if m.closed {
		return
	}
	m.closed = true
	i := slices.Index(t.moments, m)
	t.moments = slices.Delete(t.moments, i, i+1)
	var older *moment
	if i > 0 {
		older = t.moments[i-1]
	}
	t.thaw()
	w.retag()
	for _, k := range m.dead {
		if older != nil && k.age <= older.age {
			older.dead = append(older.dead, k)
			continue
		}
		t.keptSize.Add(-int64(sizeOf(k.node.class())))
		w.limbo[0].nodes = append(w.limbo[0].nodes, k.node)
	}
	for _, v := range m.vals {
		if older != nil && v.born <= older.epoch {
			older.vals = append(older.vals, v)
			continue
		}
		w.limbo[0].vals = append(w.limbo[0].vals, v.val)
	}
	m.dead, m.vals = nil, nil
	t.sweepLater()
	t.advance(w)
	t.releaseIfOver()
}

// Kept returns the bytes that are kept for snapshots alone.
func (t *Tree) Kept() int64 { return t.keptSize.Load() }

// Retire takes values that are no longer in the tree and stand for memory of the
// caller's. OnFree's function gets them when no reader and no snapshot can need
// them. born is the epoch in which each was put in, or an earlier one.
func (t *Tree) Retire(vals, born []uint64) {
	d := t.enter()
	defer t.leave(d)
	m := t.newest()
	d.retag()
	for i, v := range vals {
		if m != nil && born[i] <= m.epoch {
			d.vals = append(d.vals, keptValue{v, born[i]})
			continue
		}
		d.limbo[0].vals = append(d.limbo[0].vals, v)
		d.dropped++
	}
	t.sweepLater()
}

// drop takes what is no longer part of the tree.
func (w *writer) drop(l link) {
	if w.t.forked {
		w.fork.dead = append(w.fork.dead, l)
		return
	}
	age := l.age()
	if m := w.t.newest(); m != nil && age <= m.age {
		w.dead = append(w.dead, keptNode{l, age})
		w.t.keptSize.Add(int64(sizeOf(l.class())))
		return
	}
	w.retire(l)
}
