package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// bulk is a contest of large batches of Get: queries and answers that all its
// systems share. Unlike in lookups, everything that is not timed runs on all
// cores.
type bulk[W word] struct {
	s       *session
	d       *dataset[W]
	q, vals []W
	found   []bool
	want    []bool // which queries are keys; nil: all of them
	bare    bool   // systems return values and a count of hits, but no found flags
}

// bulkBytes returns the host memory per query in bulk, in bytes.
func bulkBytes[W word]() int { return 2*bitsOf[W]()/8 + 2 }

func newBulk[W word](s *session, d *dataset[W]) *bulk[W] {
	b := &bulk[W]{s: s, d: d, q: make([]W, s.queries), vals: make([]W, s.queries), found: make([]bool, s.queries)}
	spread(allCores(), len(b.q), func(lo, hi int) int { b.wipe(lo, hi); return 0 })
	return b
}

// asker answers a batch. found may be nil.
type asker[W word] interface {
	GetPairs(keys, vals []W, found []bool) (hits int)
}

// hits draws the queries of a round from the keys.
func (b *bulk[W]) hits(round int) { drawPieces(b.s.seed, uint64(round+1), b.q, b.d.hits) }

// contest returns a contest with random hits.
func (b *bulk[W]) contest(label string, subjects ...*subject) *contest {
	return &contest{n: len(b.d.keys), threads: allCores(), label: label, ops: len(b.q), fresh: b.hits, subjects: subjects}
}

// subject returns a system that answers the whole batch. before, which may be
// nil, sets it up; it is not timed.
func (b *bulk[W]) subject(name string, ask asker[W], before func() error) *subject {
	var hits int
	var took time.Duration
	return &subject{
		system: name,
		do: func(ops int) error {
			if before != nil {
				if err := before(); err != nil {
					return err
				}
			}
			b.warm(ask, ops)
			start := time.Now()
			hits = b.ask(ask, 0, ops)
			took = time.Since(start)
			return failed(ask)
		},
		clock: func() time.Duration { return took },
		check: func(ops int) error { return b.check(ops, hits) },
	}
}

// failed returns an error if the answers are not those of the system asked: a
// batch that fails on a GPU falls back to the CPU.
func failed(ask any) error {
	if g, ok := ask.(interface{ Down() error }); ok && g.Down() != nil {
		return fmt.Errorf("not all answers are the GPU's: %w", g.Down())
	}
	return nil
}

func (b *bulk[W]) ask(ask asker[W], lo, hi int) (hits int) {
	if b.bare {
		return ask.GetPairs(b.q[lo:hi], b.vals[lo:hi], nil)
	}
	return ask.GetPairs(b.q[lo:hi], b.vals[lo:hi], b.found[lo:hi])
}

// warm keeps a system busy before it is timed, if the round is large enough to
// be worth that. It uses the last queries, so that their lines are no longer in
// the caches when they come again.
func (b *bulk[W]) warm(ask asker[W], ops int) {
	const part = 4 * mega
	if ops < mega {
		return
	}
	first := max(0, ops-part)
	for start := time.Now(); ; {
		b.ask(ask, first, ops)
		if time.Since(start) >= b.s.warmUp {
			break
		}
	}
	b.wipe(first, ops)
}

// check compares every answer with the expected one, and wipes it, so that the
// next system cannot pass with the answers of this one.
func (b *bulk[W]) check(ops, hits int) error {
	var wrong atomic.Pointer[error]
	counted := spread(allCores(), ops, func(lo, hi int) int {
		n, err := b.checkPart(lo, hi)
		if err != nil {
			wrong.Store(&err)
		}
		b.wipe(lo, hi)
		return n
	})
	if err := wrong.Load(); err != nil {
		return *err
	}
	if hits != counted {
		return fmt.Errorf("%d hits reported where there are %d", hits, counted)
	}
	return nil
}

func (b *bulk[W]) checkPart(lo, hi int) (hits int, err error) {
	for i := lo; i < hi; i++ {
		is, want := b.want == nil || b.want[i], W(0)
		if is {
			hits++
			want = valueOf(b.q[i])
		}
		if b.vals[i] != want || !b.bare && b.found[i] != is {
			return hits, fmt.Errorf("wrong answer for key %d: value %d, found %v; it should be %d, %v",
				b.q[i], b.vals[i], b.found[i], want, is)
		}
	}
	return hits, nil
}

// wipe makes the answers wrong.
func (b *bulk[W]) wipe(lo, hi int) {
	for i := lo; i < hi; i++ {
		b.vals[i], b.found[i] = ^W(0), i%2 == 0 // neither a hit's nor a miss's
	}
}

// latest returns the rows of the contest just measured, one per subject.
func (s *session) latest(c *contest) []*row { return s.rows[len(s.rows)-len(c.subjects):] }
