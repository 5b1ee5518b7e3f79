package point

import (
	"math/rand/v2"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var skew = &contest.Experiment{
	Name:     "skew",
	About:    "Get and Rank for queries drawn from four distributions over the domain",
	Figure:   "fig. 12 of the " + contest.Paper16 + ", on the CPU",
	Per:      "one key looked up, or one rank",
	CaseName: "distribution",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: contest.ColUniform, Format: contest.Ratio}},
	Run:      runSkew,
}

// Which method answered, in the rows of skew.
const (
	viaGet  = ", Get"
	viaRank = ", Rank"
)

func runSkew(s *contest.Session) error {
	err := data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		makers := []peers.Maker[uint64]{ours.MakePairs[uint64](), peers.MakeTidwallMap[uint64](), peers.MakeBinarySearch[uint64]()}
		systems, err := peers.BuildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		l, r := work.NewLookups(s, d), work.NewRanks(s, d)
		for _, threads := range s.Threads {
			for _, dist := range data.Distributions {
				if err := skewContests(l, r, systems, threads, dist); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.CompareTo(contest.ColUniform, func(r *contest.Row) bool { return r.Case == data.Distributions[0].Name },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N && a.Threads == b.Threads })
	return nil
}

// skewContests asks every system for values, then those that support it for
// ranks.
func skewContests(l *work.Lookups[uint64], r *work.Ranks[uint64], systems []peers.System[uint64], threads int, dist data.Distribution) error {
	n := len(l.D.Keys)
	fill := func(rng *rand.Rand, q []uint64) { dist.Fill(rng, q, n) }
	gets, err := l.Contest(systems, nil, threads, dist.Name, fill, work.AskEach)
	if err != nil {
		return err
	}
	rank := &contest.Contest{N: n, Threads: threads, Label: dist.Name, Ops: len(r.Q),
		Fresh: func(round int) { fill(data.RoundRand(l.S, round), r.Q) }}
	for i, sys := range systems {
		gets.Subjects[i].System += viaGet
		asked, ok := sys.(peers.Ranker[uint64])
		if !ok {
			continue
		}
		sub, err := r.Batches(sys.Name()+viaRank, sys.BytesPerEntry(), asked, threads)
		if err != nil {
			return err
		}
		sub.Reference = i == 0 && contest.IsPando(sys.Name())
		rank.Subjects = append(rank.Subjects, sub)
	}
	if err := l.S.Compete(gets); err != nil {
		return err
	}
	return l.S.Compete(rank)
}
