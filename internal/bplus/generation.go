package bplus

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/stall"
)

// Package epoch has the protocol by which nodes are used again. Here generations end, and nodes
// are retired, under the lock of the structure. Writers are not waited for: simd.Commit looks at
// the generation while it holds the leaf.

// upperRef is added to the number of an upper node in the limbo.
const upperRef = 1 << 32

// retire puts a node aside until no reader can be reading it any more. The structure is locked.
func (t *Tree[C]) retire(ref uint64) {
	t.limbo.Open(&t.Clock, t.giveAll)
	t.limbo.Add(ref)
	t.SweepLater()
}

// generationsAtOnce is how many generations end together: more than one in
// tests, which then use memory again at once.
var generationsAtOnce = int64(1)

// advance ends the generation, if it is time and there is something to reuse. The
// structure is locked.
func (t *Tree[C]) advance() {
	if t.limbo.Empty() && t.values.Load() == nil || !t.Due() || t.limbo.Empty() && !t.values.Load().Waiting() {
		return
	}
	for range atomic.LoadInt64(&generationsAtOnce) {
		t.Advance(t.Gen())
	}
	stall.At("held: generation begun")
	t.limbo.ReapAll(&t.Clock, t.giveAll)
}

// giveAll frees nodes.
func (t *Tree[C]) giveAll(refs []uint64) {
	for _, ref := range refs {
		if ref&upperRef != 0 {
			t.uppers.give(uint32(ref))
		} else {
			t.freeLeaf(uint32(ref))
		}
	}
}

// sweep frees retired nodes and values as far as it may, and reports whether there
// are more to come.
func (t *Tree[C]) sweep() (more bool) {
	more = t.sweepNodes()
	return t.values.Load().Sweep() || more
}

// Reclaim frees retired nodes and values as far as it may, and reports whether others wait for
// the end of a generation.
func (t *Tree[C]) Reclaim() (more bool) { return t.sweep() }

// sweepNodes is sweep for nodes. It ends the generation, if it is time.
func (t *Tree[C]) sweepNodes() (more bool) {
	t.rw.Lock()
	defer t.rw.Unlock()
	t.structure.Lock()
	defer t.structure.Unlock()
	t.snapshots.mu.Lock()
	over := t.Closed() && len(t.snapshots.all) == 0
	t.snapshots.mu.Unlock()
	if over {
		return false // all memory was given back
	}
	t.advance()
	return !t.limbo.Empty()
}

// OnFree sets the function that is called with the values given to Retire, once
// no reader can see them any more.
func (t *Tree[C]) OnFree(f func(vals []C)) {
	t.values.Store(epoch.NewValues(&t.Clock, func(refs []uint64) {
		vals := make([]C, len(refs))
		for i, v := range refs {
			vals[i] = C(v)
		}
		f(vals)
	}))
}

// OnOver sets the function that is called when the memory of the tree and of all its snapshots
// is given back. OnFree comes before.
func (t *Tree[C]) OnOver(f func()) { t.values.Load().OnOver(f) }

// Newest returns the epoch of the newest snapshot, and 0 if there is none, in a tree with OnFree.
func (t *Tree[C]) Newest() uint64 { return t.values.Load().Newest() }

// Retire takes values that are no longer in the tree and stand for memory of
// the caller's. OnFree's function gets them when no reader and no snapshot can
// need them. born is the epoch in which each was put in, or an earlier one.
func (t *Tree[C]) Retire(vals []C, born []uint64) {
	var some [64]uint64
	for len(vals) > 0 {
		n := min(len(vals), len(some))
		for i, v := range vals[:n] {
			some[i] = uint64(v)
		}
		t.values.Load().Retire(some[:n], born[:n])
		vals, born = vals[n:], born[n:]
	}
}

// The compiler inlines functions of package epoch where trees are compiled, which is in packages
// above, only if it has inlined them here, outside of generic code.
var _ = func(c *epoch.Clock, l *epoch.Lock, e *epoch.Edges) bool {
	l.RLock()
	e.Acquire(0)
	e.AcquireAll()
	l.RUnlock()
	l.Lock()
	e.Release(0)
	e.ReleaseAll()
	l.Unlock()
	return c.Closed() || c.Current(c.Gen()) || c.Epoch() == c.Control().Epoch
}
