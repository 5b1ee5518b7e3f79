package tree

import (
	"errors"
	"sync/atomic"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var writersExp = &contest.Experiment{
	Name:    "writers",
	About:   "Set of new random keys by 1 to 16 goroutines at once",
	Per:     "one new key set, all goroutines together",
	Sizes:   contest.UsualSizes,
	Threads: []int{1, 2, 4, 8, 16},
	Extra:   []contest.ExtraColumn{{Name: contest.ColSpeedup, Format: contest.Ratio}},
	Run:     runWriters,
}

func runWriters(s *contest.Session) error {
	err := data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		makers := []peers.StoreMaker{ours.MakeTreeStore(contest.AllCores()), peers.MakeSkipStore(), peers.MakeTidwallLockStore()}
		stores, err := peers.BuildStores(s, len(d.Keys), makers, g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		pairs := work.NewPairs(s, work.ChangesOf(s, len(d.Keys)))
		for _, threads := range s.Threads {
			c := &contest.Contest{N: len(d.Keys), Threads: threads, Ops: len(pairs.Keys), Fresh: pairs.Fresh}
			for i, st := range stores {
				c.Subjects = append(c.Subjects, insertsBy(pairs, st.(peers.SharedStore), threads, i == 0))
			}
			if err := s.Compete(c); err != nil {
				return err
			}
		}
		return nil
	})
	s.CompareTo(contest.ColSpeedup, func(r *contest.Row) bool { return r.Threads == s.Threads[0] },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N })
	return err
}

// insertsBy is a store that takes the pairs of a round from several goroutines.
// They are taken out again.
func insertsBy(p *work.Pairs, st peers.SharedStore, threads int, reference bool) *contest.Subject {
	n := st.Len()
	return &contest.Subject{
		System: st.Name(), Reference: reference, Whole: true,
		Do: func(ops int) error {
			var failed atomic.Pointer[error]
			contest.Spread(threads, ops, func(lo, hi int) int {
				if err := st.Set(p.Keys[lo:hi], p.Vals[lo:hi]); err != nil {
					failed.Store(&err)
				}
				return 0
			})
			if err := failed.Load(); err != nil {
				return *err
			}
			return nil
		},
		Check: func(ops int) error {
			err := errors.Join(work.CheckLen(st, n+ops), p.Check(st, ops, true))
			return errors.Join(err, p.Delete(st, ops))
		},
	}
}
