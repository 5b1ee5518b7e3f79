package main

import (
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packed"
)

var packedDistance = &experiment{
	name:     "packed-distance",
	about:    "ranks in a compressed tree with 1 to 40 queries between two steps of one query",
	per:      "one rank",
	caseName: "keys",
	sizes:    usualSizes,
	run:      runPackedDistance,
}

func runPackedDistance(s *session) error {
	return bothWidths(s,
		func(d *dataset[uint64]) error { return packedContests(s, d) },
		func(d *dataset[uint32]) error { return packedContests(s, d) })
}

// packedContests varies a parameter that is set when a tree is built.
func packedContests[W word](s *session, d *dataset[W]) error {
	r := newRanks(s, d)
	var trees []*packed.Tree[W]
	defer func() {
		for _, t := range trees {
			t.Release()
		}
	}()
	names := []string{"Pando, its own distance"}
	for _, dist := range []int{0, 1, 4, 8, 12, 16, 24, 32, 40} {
		t, err := packed.Build(layout.Source[W]{Len: len(d.keys), Codes: d.keys},
			implicit.Config{Leaves: implicit.Apart, Pages: arena.HugeAll, Workers: allCores(), Distance: dist})
		if err != nil {
			return err
		}
		trees = append(trees, t)
		if dist > 0 {
			names = append(names, fmt.Sprintf("Pando, distance %d", dist))
		}
	}
	for _, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: widthName[W](), ops: len(r.q),
			fresh: func(round int) { drawPieces(s.seed, uint64(round+1), r.q, d.between) }}
		for i, t := range trees {
			all, _ := t.Memory()
			sub, err := r.batches(names[i], float64(len(all))/float64(len(d.keys)), t, threads)
			if err != nil {
				return err
			}
			sub.reference = i == 0
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}
