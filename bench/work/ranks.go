package work

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// Ranks is a contest of batches of Rank.
type Ranks[W data.Word] struct {
	s     *contest.Session
	D     *data.Dataset[W]
	Q     []W
	ranks []int
}

// NewRanks returns room for the queries of a session.
func NewRanks[W data.Word](s *contest.Session, d *data.Dataset[W]) *Ranks[W] {
	return &Ranks[W]{s: s, D: d, Q: make([]W, s.Queries), ranks: make([]int, s.Queries)}
}

// Batches returns a subject that answers all queries at once.
func (r *Ranks[W]) Batches(name string, bytes float64, sys peers.Ranker[W], threads int) (*contest.Subject, error) {
	parts := threads
	if t, ok := sys.(peers.Threaded); ok {
		if err := t.SetThreads(threads); err != nil {
			return nil, err
		}
		parts = 1
	}
	return &contest.Subject{
		System: name,
		Bytes:  bytes,
		Do: func(ops int) error {
			contest.Spread(parts, ops, func(lo, hi int) int {
				sys.Rank(r.Q[lo:hi], r.ranks[lo:hi])
				return 0
			})
			return nil
		},
		Check: r.check,
	}, nil
}

// check checks every answer and wipes it.
func (r *Ranks[W]) check(ops int) error {
	for i, k := range r.Q[:ops] {
		if !r.D.IsRank(k, r.ranks[i]) {
			return fmt.Errorf("wrong rank of key %d: %d", k, r.ranks[i])
		}
		r.ranks[i] = -1
	}
	return nil
}
