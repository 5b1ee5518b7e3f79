package radix

import (
	"sync/atomic"
	"time"
)

// sweepLater sees to it that what is retired becomes free though nobody should write
// any more.
func (t *Tree) sweepLater() {
	if !t.sweeps.Due() {
		t.sweeps.Do(time.Duration(max(2*int64(time.Millisecond), atomic.LoadInt64(&generationTime))), t.sweep)
	}
}

// sweep makes free what may be, desk by desk, and reports whether there is more to
// come. It waits for nobody: a desk where somebody works has its turn the next time.
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
