package tree

import (
	"errors"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var setBatch = &contest.Experiment{
	Name:     "set-batch",
	About:    "SetBatch of 1K to 16M new random keys, against one Set a key of tidwall's Map and of Pando",
	Per:      "one new key set",
	CaseName: "batch",
	Sizes:    []int{16 * contest.Mega},
	Threads:  contest.OneAndAll(),
	Extra:    []contest.ExtraColumn{{Name: contest.ColSpeedup, Format: contest.Ratio}},
	Run:      runSetBatch,
}

// setBatchSizes are the keys of a batch.
var setBatchSizes = []int{contest.Kilo, 64 * contest.Kilo, contest.Mega, 16 * contest.Mega}

func runSetBatch(s *contest.Session) error {
	err := data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		others, err := peers.BuildStores(s, len(d.Keys), []peers.StoreMaker{peers.MakeTidwallStore()}, g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(others)
		for i, threads := range s.Threads {
			if i > 0 {
				peers.CloseStores(others)
				others = nil
			}
			if err := setBatchContests(s, d, g, threads, others); err != nil {
				return err
			}
		}
		return nil
	})
	s.CompareTo(contest.ColSpeedup, func(r *contest.Row) bool { return r.Threads == s.Threads[0] },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N && a.Case == b.Case })
	return err
}

// setBatchContests measures one number of workers.
func setBatchContests(s *contest.Session, d *data.Dataset[uint64], g work.Growth, threads int, others []peers.Store) error {
	tree, err := ours.NewTreeStore(threads)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := g.GrowBatches(tree); err != nil {
		return err
	}
	for _, batch := range setBatchSizes {
		if batch > len(d.Keys) && batch > setBatchSizes[0] {
			continue
		}
		pairs := work.NewPairs(s, max(batch, min(work.LeastBatched, s.Queries)))
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: contest.SizeText(batch), Ops: len(pairs.Keys), Fresh: pairs.Fresh}
		c.Subjects = append(c.Subjects, batches(pairs, g, tree, batch))
		if threads == s.Threads[0] {
			for _, st := range append(others[:len(others):len(others)], tree) {
				c.Subjects = append(c.Subjects, pairs.Sets(st))
			}
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// batches is a tree that takes the pairs of a round in batches. They are taken
// out again; and where they are many, so that the tree would not be what it was,
// it is made anew before each round.
func batches(p *work.Pairs, g work.Growth, t *ours.TreeStore, batch int) *contest.Subject {
	n := t.Len()
	var took time.Duration
	return &contest.Subject{
		System: ours.NameSetBatch, Reference: true, Whole: true,
		Do: func(ops int) error {
			if ops > n/16 {
				if err := g.GrowBatches(t); err != nil {
					return err
				}
			}
			start := time.Now()
			err := t.SetBatches(p.Keys[:ops], p.Vals[:ops], batch)
			took = time.Since(start)
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error {
			err := errors.Join(work.CheckLen(t, n+ops), p.Check(t, ops, true))
			return errors.Join(err, p.Delete(t, ops))
		},
	}
}
