package exec

import (
	"sync/atomic"
	"time"
)

// paces is the time that queries have cost a worker by each scheme, in ps; 0
// for not known yet.
type paces struct {
	by    [Partitioned + 1]atomic.Int64
	turns atomic.Uint32 // portions decided on
}

// firstPace is the assumed time of a query before any was measured.
const firstPace = 50_000

// of returns the time for a query in ps, at least 1.
func (p *paces) of(s Scheme) int64 {
	if s == Auto {
		s = Partitioned
	}
	if t := p.by[s].Load(); t > 0 {
		return t
	}
	return firstPace
}

// note takes down how long a worker took for a portion. One that was held up
// changes little.
func (p *paces) note(s Scheme, took time.Duration, queries int) {
	now := max(took.Nanoseconds()*1000/int64(queries), 1)
	if old := p.by[s].Load(); old > 0 {
		now = (3*old + min(now, 2*old) + 3) / 4
	}
	p.by[s].Store(now)
}

// turn returns the scheme for the next batch where both will do: the one that
// was faster so far. That depends on more than sizes: on how many cores share
// the caches and the memory, on other programs on the machine, and on whether
// queries come back to the same keys, which are then in the cache anyway. So
// one batch in 32 tries the other.
func (p *paces) turn() Scheme {
	best, other := Unbuffered, Partitioned
	if t := p.by[Partitioned].Load(); t > 0 && t < p.by[Unbuffered].Load() {
		best, other = other, best
	}
	if p.turns.Add(1)%32 == 2 { // soon, too, while only one is known
		return other
	}
	return best
}
