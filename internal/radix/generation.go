package radix

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// Package epoch has the protocol by which nodes are used again. Here each writer has the nodes
// that it has retired itself. A writer changes the nodes that it has found, and must not be
// late: a generation ends only when all writers have begun in it.

// dropsPerLook is how many nodes are retired between two looks at the clock.
var dropsPerLook = int64(64)

// retire takes a node that is no longer part of the tree nor of any snapshot.
func (w *writer) retire(l link) {
	w.limbo.Open(&w.t.Clock, w.giveAll)
	w.limbo.Add(uint64(l))
	w.t.SweepLater()
}

// giveAll frees nodes.
func (w *writer) giveAll(refs []uint64) {
	if !w.t.over() { // else all memory is given back
		w.t.memory.giveRefs(w.keep(refs))
	}
}

// keep adds free inner nodes to the writer's stock, as far as there is room, and returns the
// others: those that it replaces are of the types that it needs, and the memory of all has one
// lock.
func (w *writer) keep(free []uint64) (others []uint64) {
	if w.stock == nil {
		return free
	}
	others = free[:0]
	for _, ref := range free {
		l := link(ref)
		if !l.isInner() || len(w.stock[l.kind()]) >= stockSlots {
			others = append(others, ref)
			continue
		}
		w.stock[l.kind()] = append(w.stock[l.kind()], l)
	}
	return others
}

// rest looks at the clock now and then, at the end of an operation.
func (w *writer) rest() {
	if w.limbo.Added < int(atomic.LoadInt64(&dropsPerLook)) {
		return
	}
	w.limbo.Added = 0
	w.t.advance(w)
}

// advance ends the generation, if it is time.
func (t *Tree) advance(w *writer) {
	if t.forked || !t.Due() {
		return
	}
	gen := t.Gen()
	if !w.alone && !t.allBegan(w, gen) {
		return
	}
	stall.At("radix: generation ends")
	t.Advance(gen)
	if !w.alone {
		w.limbo.Reap(&t.Clock, w.giveAll)
		return
	}
	for _, d := range *t.desks.Load() {
		d.limbo.Reap(&t.Clock, d.giveAll)
	}
}

// allBegan reports whether all writers but one have begun in a generation, or are not
// there.
func (t *Tree) allBegan(but *writer, gen uint64) bool {
	if mutant.On && mutant.Is("radix: writers have begun") {
		return true
	}
	for _, d := range *t.desks.Load() {
		if &d.writer == but || d.began.Load() == gen {
			continue
		}
		if !d.mu.TryLock() {
			return false
		}
		d.mu.Unlock()
	}
	return true
}

// sweep frees retired nodes, desk by desk, and values, as far as it may, and reports
// whether there are more to come. It does not wait for writers: a desk where one works has its
// turn the next time.
func (t *Tree) sweep() (more bool) {
	s := sweeping{t: t}
	for _, d := range *t.desks.Load() {
		for s.piece(d) { // writers have their turn after each
		}
	}
	if s.over {
		return false // all memory was given back
	}
	return t.values.Load().Sweep() || s.more
}

// sweeping is the state of a sweep.
type sweeping struct {
	t     *Tree
	ended bool // it has ended the generation, where that was due
	more  bool // something waits for the end of a generation, or for a writer
	over  bool // the tree is closed, and all its snapshots
}

// piece frees some retired nodes of a desk, and reports whether others there are ripe.
func (s *sweeping) piece(d *desk) (ripe bool) {
	t := s.t
	t.tend.Lock()
	defer t.tend.Unlock()
	if s.over || !d.mu.TryLock() {
		s.more = true
		return false
	}
	defer d.mu.Unlock()
	if t.over() {
		s.over = true
		return false
	}
	if !s.ended {
		s.ended = true
		t.endGeneration(d)
	}
	d.limbo.Open(&t.Clock, d.giveAll)
	ripe = d.limbo.Ripe()
	s.more = s.more || !ripe && !d.limbo.Empty()
	return ripe
}

// Reclaim frees retired nodes and values as far as it may, and reports whether others wait for
// the end of a generation.
func (t *Tree) Reclaim() (more bool) { return t.sweep() }

// endGeneration ends the present generation, if it is time, from a desk that is the
// caller's.
func (t *Tree) endGeneration(d *desk) {
	t.rw.Lock()
	defer t.rw.Unlock()
	d.began.Store(t.Gen())
	t.advance(&d.writer)
}

// turn ends the generation, if it is time and all writers have begun in it.
func (t *Tree) turn() {
	d := t.enter()
	t.advance(&d.writer)
	t.leave(d)
}
