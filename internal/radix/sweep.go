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
	if t.closed.Load() {
		return false
	}
	d := t.enter()
	t.advance(&d.writer)
	t.leave(d)
	for _, d := range *t.desks.Load() {
		if !d.mu.TryLock() {
			more = true
			continue
		}
		d.retag()
		more = more || !d.limbo[0].empty() || !d.limbo[1].empty()
		d.mu.Unlock()
	}
	return more
}

func (r *retired) empty() bool { return len(r.nodes)+len(r.vals) == 0 }
