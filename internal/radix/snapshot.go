package radix

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// A snapshot is the root of the tree at the end of an epoch; taking one begins the
// next epoch. From then on a writer that is to change a node which was made before
// copies it, and the nodes above it, so that the snapshot keeps its nodes.
//
// Nodes that are no longer part of the tree but of snapshots are noted with the
// newest of them. When that is closed, nodes that the next older one does not
// have are freed.

// moment is the state of a tree at the end of an epoch.
type moment struct {
	epoch   uint64
	age     uint32 // nodes with this age or less were there
	root    link
	entries int64
	dead    epoch.List // nodes that are no longer part of the tree, with their ages
	closed  atomic.Bool
}

// Snapshot is a tree as it was at one moment. It is closed when nobody needs it
// any more, by hand or by the garbage collector.
type Snapshot struct {
	tree   *Tree
	hold   *epoch.Hold
	moment *moment
	closed atomic.Bool
}

// Snapshot returns the tree of this moment.
func (t *Tree) Snapshot() (*Snapshot, error) {
	t.batch.Lock()
	defer t.batch.Unlock()
	t.lockWrite()
	defer t.unlockWrite()
	if t.Closed() {
		return nil, op.ErrClosed
	}
	if len(t.moments) >= int(ageHalf/2) {
		return nil, fmt.Errorf("%w: %d snapshots are open", op.ErrLimit, len(t.moments))
	}
	m := &moment{epoch: t.Epoch(), age: t.age, root: t.top.link, entries: t.entries()}
	t.moments = append(t.moments, m)
	t.values.Load().Begin(m.epoch)
	t.nextAge()
	t.thaw()
	t.edges.AcquireAll()
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

// Close gives back the nodes that were kept for this snapshot alone.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.tree.end(s.moment)
	}
}

// end closes a snapshot: its nodes go to the next older one, or are freed. They may be many, and
// it is done a piece at a time, from a desk: others write meanwhile.
func (t *Tree) end(m *moment) {
	if !t.detach(m) {
		return
	}
	for t.endSome(m) {
	}
	t.values.Load().End(m.epoch)
	w := t.lockWrite()
	defer t.unlockWrite()
	t.ending = slices.DeleteFunc(t.ending, func(x *moment) bool { return x == m })
	t.SweepLater()
	t.advance(w)
	t.releaseIfOver()
}

// detach takes a snapshot out of those that there are, and reports whether it was one. For one
// that was closed by hand, and is collected later, it takes no desk.
func (t *Tree) detach(m *moment) bool {
	if m.closed.Swap(true) {
		return false
	}
	t.lockWrite()
	defer t.unlockWrite()
	t.moments = slices.DeleteFunc(t.moments, func(x *moment) bool { return x == m })
	t.ending = append(t.ending, m)
	t.thaw()
	return true
}

// endPiece is how many nodes of a snapshot are looked at before others have their turn: some
// tens of microseconds. It is a variable for tests.
var endPiece = 512

func init() {
	if stall.On {
		endPiece = 2
	}
}

// endSome hands over some nodes of a closed snapshot, and reports whether there are more.
func (t *Tree) endSome(m *moment) (more bool) {
	d := t.enter()
	defer t.leave(d)
	if t.over() {
		return false // all memory was given back
	}
	// Others may hand theirs to the same snapshot. It is looked for each time, since it may be
	// closed as well; while the writer is at its desk it is not.
	t.handing.Lock()
	defer t.handing.Unlock()
	to, until := (*epoch.List)(nil), uint64(0)
	if older := t.olderThan(m); older != nil {
		to, until = &older.dead, uint64(older.age)
	}
	d.limbo.Open(&t.Clock, d.giveAll)
	return m.dead.Pass(endPiece, to, until, func(ref uint64) {
		t.keptSize.Add(-int64(sizeOf(link(ref).class())))
		d.limbo.Add(ref)
	})
}

// olderThan returns the newest snapshot that is older than one; nil if there is none.
func (t *Tree) olderThan(m *moment) *moment {
	for i := len(t.moments) - 1; i >= 0; i-- {
		if t.moments[i].epoch < m.epoch {
			return t.moments[i]
		}
	}
	return nil
}

// over reports whether the tree is closed, and all its snapshots.
func (t *Tree) over() bool { return t.Closed() && len(t.moments) == 0 }

// Kept returns the bytes that are kept for snapshots alone.
func (t *Tree) Kept() int64 { return t.keptSize.Load() }

// Retire takes values that are no longer in the tree and stand for memory of the
// caller's. OnFree's function gets them when no reader and no snapshot can need
// them. born is the epoch in which each was put in, or an earlier one.
func (t *Tree) Retire(vals, born []uint64) { t.values.Load().Retire(vals, born) }

// drop takes a node that is no longer part of the tree.
func (w *writer) drop(l link) {
	if w.t.forked {
		w.fork.dead = append(w.fork.dead, l)
		return
	}
	age := l.age()
	if m := w.t.newest(); m != nil && age <= m.age {
		w.dead.Add(epoch.Kept{Ref: uint64(l), Born: uint64(age)})
		w.t.keptSize.Add(int64(sizeOf(l.class())))
		return
	}
	w.retire(l)
}
