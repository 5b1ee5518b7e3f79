package point

import (
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var pointU64 = &contest.Experiment{
	Name:   "point-u64",
	About:  "a batch of Get, uint64 to uint64, random hits, beside every peer",
	Figure: "fig. 16(a), CPU line, of the " + contest.Paper16 + "; fig. 9 without FAST",
	Per:    "one key looked up",
	Sizes:  contest.UsualSizes,
	Run:    runPoint[uint64],
}

var pointU32 = &contest.Experiment{
	Name:   "point-u32",
	About:  "a batch of Get, uint32 to uint32, random hits, beside every peer",
	Figure: "fig. 16(b), CPU line, of the " + contest.Paper16,
	Per:    "one key looked up",
	Sizes:  contest.UsualSizes,
	Run:    runPoint[uint32],
}

func runPoint[W data.Word](s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[W]) error {
		return pointContests(s, d, slices.Concat(ours.Layouts[W](), peers.Makers[W](), peers.CPPMakers[W](s)))
	})
}

// pointContests builds the systems, and the limit's block.
func pointContests[W data.Word](s *contest.Session, d *data.Dataset[W], makers []peers.Maker[W]) error {
	return work.WithLimit(s, data.PairBytes[W](), len(d.Keys), func(limit *work.ReadLimit) error {
		systems, err := peers.BuildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		return hitContests(s, d, systems, limit)
	})
}

// hitContests lets the systems answer random hits on each number of threads.
func hitContests[W data.Word](s *contest.Session, d *data.Dataset[W], systems []peers.System[W], limit *work.ReadLimit) error {
	l := work.NewLookups(s, d)
	for _, threads := range s.Threads {
		c, err := l.Contest(systems, limit, threads, "", d.Hits, work.AllHits)
		if err != nil {
			return err
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
