package main

import (
	"fmt"
	"math/rand/v2"
)

// lookups is a contest of batches of Get: queries and answers that all its
// systems share.
type lookups[W word] struct {
	s       *session
	d       *dataset[W]
	q, vals []W
	found   []bool
	want    []bool // which queries of the round are keys
}

// filler makes queries.
type filler[W word] func(*rand.Rand, []W)

// expect tells which queries of a filler are keys.
type expect uint8

const (
	allHits expect = iota
	allMisses
	askEach
)

func newLookups[W word](s *session, d *dataset[W]) *lookups[W] {
	n := s.queries
	return &lookups[W]{s: s, d: d, q: make([]W, n), vals: make([]W, n), found: make([]bool, n), want: make([]bool, n)}
}

// roundRand returns a random generator for a round; round -1 is the warm-up.
func (s *session) roundRand(round int) *rand.Rand {
	return newRand(s.seed, streamQueries+uint64(round+1))
}

// fresh makes the queries of a round.
func (l *lookups[W]) fresh(round int, fill filler[W], ex expect) {
	fill(l.s.roundRand(round), l.q)
	for i, k := range l.q {
		l.want[i] = ex == allHits || ex == askEach && l.d.has(k)
	}
}

// batches returns a subject that answers all queries at once.
func (l *lookups[W]) batches(sys system[W], threads int) (*subject, error) {
	parts := threads
	if t, ok := sys.(threaded); ok {
		if err := t.SetThreads(threads); err != nil {
			return nil, err
		}
		parts = 1
	}
	var hits int
	return &subject{
		system: sys.Name(),
		bytes:  sys.BytesPerEntry(),
		do: func(ops int) error {
			hits = spread(parts, ops, func(lo, hi int) int {
				return sys.Get(l.q[lo:hi], l.vals[lo:hi], l.found[lo:hi])
			})
			return failureOf(sys)
		},
		clock: clockOf(sys),
		check: func(ops int) error { return l.check(ops, hits) },
	}, nil
}

// check compares every answer with the expected one, and wipes it, so that the
// next system cannot pass with the answers of this one.
func (l *lookups[W]) check(ops, hits int) error {
	counted := 0
	for i, k := range l.q[:ops] {
		want := W(0)
		if l.want[i] {
			counted++
			want = valueOf(k)
		}
		if l.found[i] != l.want[i] || l.vals[i] != want {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v; it should be %d, %v",
				k, l.vals[i], l.found[i], want, l.want[i])
		}
	}
	l.wipe(ops)
	if hits != counted {
		return fmt.Errorf("%d hits reported where there are %d", hits, counted)
	}
	return nil
}

func (l *lookups[W]) wipe(ops int) {
	for i := range ops {
		l.vals[i], l.found[i] = ^W(0), i%2 == 0 // neither a hit's nor a miss's
	}
}

// contest makes a contest of batches. The first system is the reference, if
// it is Pando.
func (l *lookups[W]) contest(systems []system[W], limit *readLimit, threads int, label string,
	fill filler[W], ex expect) (*contest, error) {
	c := &contest{n: len(l.d.keys), threads: threads, label: label, ops: len(l.q)}
	for i, sys := range systems {
		sub, err := l.batches(sys, threads)
		if err != nil {
			return nil, err
		}
		sub.reference = i == 0 && isPando(sys.Name())
		c.subjects = append(c.subjects, sub)
	}
	if limit != nil {
		c.subjects = append(c.subjects, limit.subject(threads))
	}
	c.fresh = func(round int) {
		l.fresh(round, fill, ex)
		if limit != nil {
			limit.fresh(l.s.roundRand(round))
		}
	}
	return c, nil
}
