package radix

import (
	"sync/atomic"
	"time"
)

// sweepLater makes sure that retired nodes become free even if no writer comes any
// more.
func (t *Tree) sweepLater() {
	if !t.sweeps.Due() {
		t.sweeps.Do(time.Duration(max(2*int64(time.Millisecond), atomic.LoadInt64(&generationTime))), t.sweep)
	}
}

// sweep frees retired nodes, desk by desk, as far as it may, and reports whether
// there are more to come. It does not wait: a desk where a writer works has its turn
// the next time.
func (t *Tree) sweep() (more bool) {
	ended := false
	for _, d := range *t.desks.Load() {
		if !d.mu.TryLock() {
			more = true
			continue
		}
		if t.over() {
			d.mu.Unlock()
			return false // all memory was given back
		}
		if !ended {
			ended = true
			t.endGeneration(d)
		}
		d.retag()
		more = more || !d.limbo[0].empty() || !d.limbo[1].empty()
		d.mu.Unlock()
	}
	return more
}

// endGeneration ends the present generation, if it is time, from a desk that is the
// caller's.
func (t *Tree) endGeneration(d *desk) {
	if !optimistic {
		t.rw.Lock()
		defer t.rw.Unlock()
	}
	d.began.Store(t.Gen())
	t.advance(&d.writer)
}

func (r *retired) empty() bool { return len(r.nodes)+len(r.vals) == 0 }
