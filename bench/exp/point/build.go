package point

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var build = &contest.Experiment{
	Name:     "build",
	About:    "Freeze from sorted and from unsorted uint64 pairs",
	Figure:   "fig. 15, CPU part (building the implicit tree anew), of the " + contest.Paper16,
	Per:      "one pair put into the index",
	CaseName: "input",
	Sizes:    contest.UsualSizes,
	Threads:  contest.AllThreads(),
	Run:      runBuild,
}

func runBuild(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		if err := work.BuildContests(s, d, "sorted", sortedBuilders[uint64]()); err != nil {
			return err
		}
		s.Say("shuffling %s pairs ...", contest.SizeText(len(d.Keys)))
		return work.BuildContests(s, d.Shuffled(s.Seed), "unsorted", unsortedBuilders[uint64]())
	})
}

func sortedBuilders[W data.Word]() []peers.Builder[W] {
	pair := data.PairBytes[W]()
	return []peers.Builder[W]{
		{Name: contest.Pando, Peak: 2 * pair, Make: ours.FreezeOnce[W]},
		{Name: peers.NameTidwallMap + ", Load", Peak: 10 * pair, Peer: true, Make: peers.TidwallByLoad[W]},
		{Name: peers.NameGoogle, Peak: 10 * pair, Peer: true, Make: peers.BuildGoogle[W]},
		{Name: peers.NameGoMap, Peak: peers.MapPeak * pair, Peer: true, Make: peers.BuildGoMap[W]},
		{Name: "limit: copy of the pairs", Peak: 2 * pair, Peer: true, Make: peers.CopyPairs[W]},
	}
}

func unsortedBuilders[W data.Word]() []peers.Builder[W] {
	pair := data.PairBytes[W]()
	return []peers.Builder[W]{
		{Name: contest.Pando, Peak: 4 * pair, Make: ours.FreezeOnce[W]},
		{Name: peers.NameTidwallMap + ", Set", Peak: 10 * pair, Peer: true, Make: peers.TidwallBySet[W]},
		{Name: peers.NameGoogle, Peak: 10 * pair, Peer: true, Make: peers.BuildGoogle[W]},
		{Name: peers.NameGoMap, Peak: peers.MapPeak * pair, Peer: true, Make: peers.BuildGoMap[W]},
		{Name: "slices.SortFunc of pairs", Peak: 2 * pair, Peer: true, Make: peers.SortPairs[W]},
	}
}
