package point

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var rankU32 = &contest.Experiment{
	Name:   "rank-u32",
	About:  "a batch of Rank over uint32 keys without values, hits and misses",
	Figure: "fig. 16(b), CPU line, of the " + contest.Paper16 + ", without the values",
	Per:    "one rank",
	Sizes:  contest.UsualSizes,
	Run:    runRankU32,
}

func runRankU32(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint32]) error {
		return work.WithLimit(s, data.KeyBytesU32, len(d.Keys), func(limit *work.ReadLimit) error {
			s.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
			set, err := ours.OpenFrozenSet(d.Keys)
			if err != nil {
				return err
			}
			defer set.Close()
			for _, threads := range s.Threads {
				if err := rankContest(s, d, set, limit, threads); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func rankContest(s *contest.Session, d *data.Dataset[uint32], set ours.FrozenSet[uint32], limit *work.ReadLimit, threads int) error {
	r := work.NewRanks(s, d)
	c := &contest.Contest{N: len(d.Keys), Threads: threads, Ops: len(r.Q)}
	sub, err := r.Batches(contest.Pando, set.BytesPerEntry(), set, threads)
	if err != nil {
		return err
	}
	sub.Reference = true
	c.Subjects = append(c.Subjects, sub)
	if s.Wanted(peers.NameBinary) {
		sub, err := r.Batches(peers.NameBinary, data.KeyBytesU32, peers.NewBinarySearch(d), threads)
		if err != nil {
			return err
		}
		c.Subjects = append(c.Subjects, sub)
	}
	if limit != nil {
		c.Subjects = append(c.Subjects, limit.Subject(threads))
	}
	c.Fresh = func(round int) {
		rng := data.RoundRand(s, round)
		d.Between(rng, r.Q)
		if limit != nil {
			limit.Fresh(rng)
		}
	}
	return s.Compete(c)
}
