package radix

import (
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// Memory is used again two generations after it was retired. Each writer has the
// nodes that it has retired itself.

// retired is the nodes that are no longer part of the tree, but may still be read.
type retired struct {
	nodes []link
	vals  []uint64
}

// generationTime is the least time between two generations in nanoseconds: a
// bucket of a batch takes less, so that it hardly ever has to be repeated.
var generationTime = int64(time.Millisecond)

// dropsPerLook is how many nodes are retired between two looks at the clock.
var dropsPerLook = int64(64)

var start = time.Now()

// retire takes a node that is no longer part of the tree nor of any snapshot.
func (w *writer) retire(l link) {
	w.retag()
	w.limbo[0].nodes = append(w.limbo[0].nodes, l)
	w.dropped++
	w.t.sweepLater()
}

// retag makes limbo[0] the list of nodes retired in the present generation.
func (w *writer) retag() {
	// The store that took it out of the tree comes before the look at the
	// generation, and with an exchange the machine keeps to that.
	w.began.Store(w.began.Load())
	w.reap(w.t.Gen())
}

// reap frees the nodes that were retired two generations before gen, the present
// one.
func (w *writer) reap(gen uint64) {
	if gen == w.tag {
		return
	}
	if gen-w.tag > 1 {
		w.giveAll(&w.limbo[0])
	}
	w.giveAll(&w.limbo[1])
	w.limbo[0], w.limbo[1] = w.limbo[1], w.limbo[0]
	w.tag = gen
}

// giveAll frees the nodes of r.
func (w *writer) giveAll(r *retired) {
	if len(r.nodes) > 0 && !w.t.over() { // else all memory is given back
		w.t.memory.give(w.keep(r.nodes)...)
	}
	if len(r.vals) > 0 {
		w.t.dropVals(r.vals)
	}
	r.nodes, r.vals = r.nodes[:0], nil
}

// keep adds free inner nodes to the writer's stock, as far as there is room, and returns the
// others: those that it replaces are of the types that it needs, and the memory of all has one
// lock.
func (w *writer) keep(free []link) (others []link) {
	if w.stock == nil {
		return free
	}
	others = free[:0]
	for _, l := range free {
		if !l.isInner() || len(w.stock[l.kind()]) >= stockSlots {
			others = append(others, l)
			continue
		}
		w.stock[l.kind()] = append(w.stock[l.kind()], l)
	}
	return others
}

// rest looks at the clock now and then, at the end of an operation.
func (w *writer) rest() {
	if w.dropped < int(atomic.LoadInt64(&dropsPerLook)) {
		return
	}
	w.dropped = 0
	w.t.advance(w)
}

// advance begins a new generation, if it is time: nodes that were retired two
// generations ago become free. A reader that began in generation g may hold nodes that
// were retired in g or later, and these are not reused before g+2. So it looks at the
// number when it is done, and begins anew if it has grown by 2. A writer, which changes
// the nodes that it has found, must not be late: a generation ends only when all
// writers have begun in it.
func (t *Tree) advance(w *writer) {
	if t.forked {
		return
	}
	now, last := int64(time.Since(start)), t.advanced.Load()
	if now-last < atomic.LoadInt64(&generationTime) || !t.advanced.CompareAndSwap(last, now) {
		return
	}
	gen := t.Gen()
	if !w.alone && !t.allBegan(w, gen) {
		return
	}
	stall.At("radix: generation ends")
	if atomic.CompareAndSwapUint64(&t.control.gen, gen, gen+1) {
		gen++
	}
	if !w.alone {
		w.reap(t.Gen())
		return
	}
	for _, d := range *t.desks.Load() {
		d.reap(gen)
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
