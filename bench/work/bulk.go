package work

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// Bulk is a contest of large batches of Get: queries and answers that all its
// systems share. Unlike in Lookups, everything that is not timed runs on all
// cores.
type Bulk[W data.Word] struct {
	S       *contest.Session
	D       *data.Dataset[W]
	Q, Vals []W
	Found   []bool
	Want    []bool // which queries are keys; nil: all of them
	Bare    bool   // systems return values and a count of hits, but no found flags
}

// BulkBytes returns the host memory per query in bulk, in bytes.
func BulkBytes[W data.Word]() int { return 2*data.BitsOf[W]()/8 + 2 }

// NewBulk returns room for the queries of a session.
func NewBulk[W data.Word](s *contest.Session, d *data.Dataset[W]) *Bulk[W] {
	b := &Bulk[W]{S: s, D: d, Q: make([]W, s.Queries), Vals: make([]W, s.Queries), Found: make([]bool, s.Queries)}
	contest.Spread(contest.AllCores(), len(b.Q), func(lo, hi int) int { b.Wipe(lo, hi); return 0 })
	return b
}

// asker answers a batch. found may be nil.
type asker[W data.Word] interface {
	GetPairs(keys, vals []W, found []bool) (hits int)
}

// Hits draws the queries of a round from the keys.
func (b *Bulk[W]) Hits(round int) { data.DrawPieces(b.S.Seed, uint64(round+1), b.Q, b.D.Hits) }

// Contest returns a contest with random hits.
func (b *Bulk[W]) Contest(label string, subjects ...*contest.Subject) *contest.Contest {
	return &contest.Contest{N: len(b.D.Keys), Threads: contest.AllCores(), Label: label, Ops: len(b.Q), Fresh: b.Hits, Subjects: subjects}
}

// Subject returns a system that answers the whole batch. before, which may be
// nil, sets it up; it is not timed.
func (b *Bulk[W]) Subject(name string, ask asker[W], before func() error) *contest.Subject {
	var hits int
	var took time.Duration
	return &contest.Subject{
		System: name,
		Do: func(ops int) error {
			if before != nil {
				if err := before(); err != nil {
					return err
				}
			}
			b.warm(ask, ops)
			start := time.Now()
			hits = b.Ask(ask, 0, ops)
			took = time.Since(start)
			return Failed(ask)
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error { return b.Check(ops, hits) },
	}
}

// Failed returns an error if the answers are not those of the system asked: a
// batch that fails on a GPU falls back to the CPU.
func Failed(ask any) error {
	if g, ok := ask.(interface{ Down() error }); ok && g.Down() != nil {
		return fmt.Errorf("not all answers are the GPU's: %w", g.Down())
	}
	return nil
}

// Ask asks the queries [lo, hi), and returns the hits.
func (b *Bulk[W]) Ask(ask asker[W], lo, hi int) (hits int) {
	if b.Bare {
		return ask.GetPairs(b.Q[lo:hi], b.Vals[lo:hi], nil)
	}
	return ask.GetPairs(b.Q[lo:hi], b.Vals[lo:hi], b.Found[lo:hi])
}

// warm keeps a system busy before it is timed, if the round is large enough to
// be worth that. It uses the last queries, so that their lines are no longer in
// the caches when they come again.
func (b *Bulk[W]) warm(ask asker[W], ops int) {
	const part = 4 * contest.Mega
	if ops < contest.Mega {
		return
	}
	first := max(0, ops-part)
	for start := time.Now(); ; {
		b.Ask(ask, first, ops)
		if time.Since(start) >= b.S.WarmUp {
			break
		}
	}
	b.Wipe(first, ops)
}

// Check compares every answer with the expected one, and wipes it, so that the
// next system cannot pass with the answers of this one.
func (b *Bulk[W]) Check(ops, hits int) error {
	var wrong atomic.Pointer[error]
	counted := contest.Spread(contest.AllCores(), ops, func(lo, hi int) int {
		n, err := b.checkPart(lo, hi)
		if err != nil {
			wrong.Store(&err)
		}
		b.Wipe(lo, hi)
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

func (b *Bulk[W]) checkPart(lo, hi int) (hits int, err error) {
	for i := lo; i < hi; i++ {
		is, want := b.Want == nil || b.Want[i], W(0)
		if is {
			hits++
			want = data.ValueOf(b.Q[i])
		}
		if b.Vals[i] != want || !b.Bare && b.Found[i] != is {
			return hits, fmt.Errorf("wrong answer for key %d: value %d, found %v; it should be %d, %v",
				b.Q[i], b.Vals[i], b.Found[i], want, is)
		}
	}
	return hits, nil
}

// Wipe makes the answers wrong.
func (b *Bulk[W]) Wipe(lo, hi int) {
	for i := lo; i < hi; i++ {
		b.Vals[i], b.Found[i] = ^W(0), i%2 == 0 // neither a hit's nor a miss's
	}
}
