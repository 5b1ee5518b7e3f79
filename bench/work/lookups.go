// Package work is what systems do in a round and how it is checked: lookups,
// ranks, changes, builds, sums, and the reads that no index can do without. It
// knows neither Pando nor any peer, but what they have in common.
package work

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// Lookups is a contest of batches of Get: queries and answers that all its
// systems share.
type Lookups[W data.Word] struct {
	S       *contest.Session
	D       *data.Dataset[W]
	Q, Vals []W
	Found   []bool
	Want    []bool // which queries of the round are keys
}

// Expect tells which queries of a filler are keys.
type Expect uint8

// All queries are keys, none is, or each is asked for.
const (
	AllHits Expect = iota
	AllMisses
	AskEach
)

// NewLookups returns room for the queries of a session.
func NewLookups[W data.Word](s *contest.Session, d *data.Dataset[W]) *Lookups[W] {
	n := s.Queries
	return &Lookups[W]{S: s, D: d, Q: make([]W, n), Vals: make([]W, n), Found: make([]bool, n), Want: make([]bool, n)}
}

// Fresh makes the queries of a round.
func (l *Lookups[W]) Fresh(round int, fill data.Filler[W], ex Expect) {
	fill(data.RoundRand(l.S, round), l.Q)
	for i, k := range l.Q {
		l.Want[i] = ex == AllHits || ex == AskEach && l.D.Has(k)
	}
}

// Batches returns a subject that answers all queries at once.
func (l *Lookups[W]) Batches(sys peers.System[W], threads int) (*contest.Subject, error) {
	parts := threads
	if t, ok := sys.(peers.Threaded); ok {
		if err := t.SetThreads(threads); err != nil {
			return nil, err
		}
		parts = 1
	}
	var hits int
	return &contest.Subject{
		System: sys.Name(),
		Bytes:  sys.BytesPerEntry(),
		Do: func(ops int) error {
			hits = contest.Spread(parts, ops, func(lo, hi int) int {
				return sys.Get(l.Q[lo:hi], l.Vals[lo:hi], l.Found[lo:hi])
			})
			return peers.FailureOf(sys)
		},
		Clock: peers.ClockOf(sys),
		Check: func(ops int) error { return l.Check(ops, hits) },
	}, nil
}

// Check compares every answer with the expected one, and wipes it, so that the
// next system cannot pass with the answers of this one.
func (l *Lookups[W]) Check(ops, hits int) error {
	counted := 0
	for i, k := range l.Q[:ops] {
		want := W(0)
		if l.Want[i] {
			counted++
			want = data.ValueOf(k)
		}
		if l.Found[i] != l.Want[i] || l.Vals[i] != want {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v; it should be %d, %v",
				k, l.Vals[i], l.Found[i], want, l.Want[i])
		}
	}
	l.Wipe(ops)
	if hits != counted {
		return fmt.Errorf("%d hits reported where there are %d", hits, counted)
	}
	return nil
}

// Wipe makes the answers wrong.
func (l *Lookups[W]) Wipe(ops int) {
	for i := range ops {
		l.Vals[i], l.Found[i] = ^W(0), i%2 == 0 // neither a hit's nor a miss's
	}
}

// Contest makes a contest of batches. The first system is the reference, if
// it is Pando.
func (l *Lookups[W]) Contest(systems []peers.System[W], limit *ReadLimit, threads int, label string,
	fill data.Filler[W], ex Expect) (*contest.Contest, error) {
	c := &contest.Contest{N: len(l.D.Keys), Threads: threads, Label: label, Ops: len(l.Q)}
	for i, sys := range systems {
		sub, err := l.Batches(sys, threads)
		if err != nil {
			return nil, err
		}
		sub.Reference = i == 0 && contest.IsPando(sys.Name())
		c.Subjects = append(c.Subjects, sub)
	}
	if limit != nil {
		c.Subjects = append(c.Subjects, limit.Subject(threads))
	}
	c.Fresh = func(round int) {
		l.Fresh(round, fill, ex)
		if limit != nil {
			limit.Fresh(data.RoundRand(l.S, round))
		}
	}
	return c, nil
}

// Ask returns a subject that answers all queries with one call.
func (l *Lookups[W]) Ask(sys interface {
	Get(q, vals []W, found []bool) (hits int)
}, name string, bytes float64, reference bool) *contest.Subject {
	var hits int
	return &contest.Subject{
		System: name, Bytes: bytes, Reference: reference,
		Do: func(ops int) error {
			hits = sys.Get(l.Q[:ops], l.Vals[:ops], l.Found[:ops])
			return peers.FailureOf(sys)
		},
		Clock: peers.ClockOf(sys),
		Check: func(ops int) error { return l.Check(ops, hits) },
	}
}
