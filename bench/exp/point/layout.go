package point

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var layoutExp = &contest.Experiment{
	Name:     "layout",
	About:    "leaves with pairs in one line against keys and values apart, hits and misses",
	Per:      "one key looked up",
	CaseName: "queries",
	Sizes:    contest.UsualSizes,
	Run:      runLayout,
}

func runLayout(s *contest.Session) error {
	if err := layoutContests[uint64](s, "uint64"); err != nil {
		return err
	}
	return layoutContests[uint32](s, "uint32")
}

func layoutContests[W data.Word](s *contest.Session, width string) error {
	return data.ForEachSize(s, func(d *data.Dataset[W]) error {
		systems, err := peers.BuildAll(s, d, ours.Layouts[W]())
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		l := work.NewLookups(s, d)
		for _, threads := range s.Threads {
			for _, q := range []struct {
				label string
				fill  data.Filler[W]
				ex    work.Expect
			}{{"hits", d.Hits, work.AllHits}, {"misses", d.Misses, work.AllMisses}} {
				c, err := l.Contest(systems, nil, threads, width+" "+q.label, q.fill, q.ex)
				if err != nil {
					return err
				}
				if err := s.Compete(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
