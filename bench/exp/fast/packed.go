package fast

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/work"
)

var packedDistance = &contest.Experiment{
	Name:     "packed-distance",
	About:    "ranks in a compressed tree with 1 to 40 queries between two steps of one query",
	Per:      "one rank",
	CaseName: "keys",
	Sizes:    contest.UsualSizes,
	Run:      runPackedDistance,
}

func runPackedDistance(s *contest.Session) error {
	return data.BothWidths(s,
		func(d *data.Dataset[uint64]) error { return packedContests(s, d) },
		func(d *data.Dataset[uint32]) error { return packedContests(s, d) })
}

// packedContests varies a parameter that is set when a tree is built.
func packedContests[W data.Word](s *contest.Session, d *data.Dataset[W]) error {
	r := work.NewRanks(s, d)
	var trees []*inside.Packed[W]
	defer func() {
		for _, t := range trees {
			t.Release()
		}
	}()
	names := []string{"Pando, its own distance"}
	for _, dist := range []int{0, 1, 4, 8, 12, 16, 24, 32, 40} {
		t, err := inside.BuildPacked(d, dist)
		if err != nil {
			return err
		}
		trees = append(trees, t)
		if dist > 0 {
			names = append(names, fmt.Sprintf("Pando, distance %d", dist))
		}
	}
	for _, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: data.WidthName[W](), Ops: len(r.Q),
			Fresh: func(round int) { data.DrawPieces(s.Seed, uint64(round+1), r.Q, d.Between) }}
		for i, t := range trees {
			all, _ := t.Memory()
			sub, err := r.Batches(names[i], float64(len(all))/float64(len(d.Keys)), t, threads)
			if err != nil {
				return err
			}
			sub.Reference = i == 0
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
