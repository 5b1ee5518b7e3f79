package point

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

var threadsExp = &contest.Experiment{
	Name:    "threads",
	About:   "a batch of Get on 1, 2, ... threads",
	Per:     "one key looked up, all threads together",
	Sizes:   contest.UsualSizes,
	Threads: contest.AllThreads(),
	Extra:   []contest.ExtraColumn{{Name: contest.ColSpeedup, Format: contest.Ratio}},
	Run:     runThreads,
}

func runThreads(s *contest.Session) error {
	err := data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		makers := []peers.Maker[uint64]{ours.MakePairs[uint64](), peers.MakeTidwallMap[uint64](), peers.MakeBinarySearch[uint64](), peers.MakeGoMap[uint64]()}
		return pointContests(s, d, makers)
	})
	if err != nil {
		return err
	}
	s.CompareTo(contest.ColSpeedup, func(r *contest.Row) bool { return r.Threads == s.Threads[0] },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N })
	return nil
}
