package tree

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var setRandom = &contest.Experiment{
	Name:  "set-random",
	About: "Set of new random keys, one call a key, in maps that have grown by such",
	Per:   "one new key set, one after the other",
	Sizes: contest.UsualSizes,
	Run:   runSetRandom,
}

var setAscending = &contest.Experiment{
	Name:  "set-ascending",
	About: "Set of ascending keys, one call a key, from an empty map on",
	Per:   "one key set",
	Sizes: []int{contest.Mega},
	Run:   runSetAscending,
}

var deleteExp = &contest.Experiment{
	Name:  "delete",
	About: "Delete of random keys, one call a key, and DeleteBatch",
	Per:   "one key deleted",
	Sizes: contest.UsualSizes,
	Run:   runDelete,
}

func runSetRandom(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		stores, err := peers.BuildStores(s, len(d.Keys), changeMakers(s), g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		pairs := work.NewPairs(s, work.ChangesOf(s, len(d.Keys)))
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Ops: len(pairs.Keys), Fresh: pairs.Fresh}
		for i, st := range stores {
			c.Subjects = append(c.Subjects, inserts(pairs, st, i == 0))
		}
		return s.Compete(c)
	})
}

// changeMakers returns Pando's tree and every peer, those of C++ too.
func changeMakers(s *contest.Session) []peers.StoreMaker {
	return slices.Concat([]peers.StoreMaker{ours.MakeTreeStore(1)}, peers.Stores(), peers.CPPStores(s))
}

// inserts is a store that takes the pairs of each round, and keeps them.
func inserts(p *work.Pairs, st peers.Store, reference bool) *contest.Subject {
	want := st.Len()
	return &contest.Subject{
		System: st.Name(), Reference: reference, Whole: true, Clock: peers.ClockOf(st),
		Do: func(ops int) error { return st.Set(p.Keys[:ops], p.Vals[:ops]) },
		Check: func(ops int) error {
			want += ops
			return errors.Join(work.CheckLen(st, want), p.Check(st, ops, true))
		},
	}
}

func runSetAscending(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Ops: len(d.Keys)}
		for i, m := range changeMakers(s) {
			if s.Fits(m.Name, len(d.Keys), 2*m.Peak) {
				c.Subjects = append(c.Subjects, work.Fills(s, d, m, m.Name, i == 0, peers.Store.Set))
			}
		}
		return s.Compete(c)
	})
}

func runDelete(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		makers := []peers.StoreMaker{ours.MakeTreeStore(1), peers.MakeTidwallStore(), peers.MakeGoogleStore(), peers.MakeSkipStore()}
		stores, err := peers.BuildStores(s, len(d.Keys), makers, g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		pairs := work.NewPairs(s, work.ChangesOf(s, len(d.Keys)))
		from := d.Shuffled(s.Seed)
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Ops: len(pairs.Keys), Fresh: func(round int) { take(pairs, from, round) }}
		for i, st := range stores {
			c.Subjects = append(c.Subjects, deletes(pairs, st, st.Name(), i == 0, st.(peers.Deleter).Delete))
			if t, ok := st.(*ours.TreeStore); ok {
				c.Subjects = append(c.Subjects, deletes(pairs, st, "Pando DeleteBatch", false, t.DeleteBatch))
			}
		}
		return s.Compete(c)
	})
}

// take takes the keys of a round from shuffled ones, others each round.
func take(p *work.Pairs, from *data.Dataset[uint64], round int) {
	at := (round + 1) * len(p.Keys) % len(from.Keys)
	for i := range p.Keys {
		j := (at + i) % len(from.Keys)
		p.Keys[i], p.Vals[i] = from.Keys[j], from.Vals[j]
	}
}

// deletes is a store that loses the keys of a round, and then gets them back.
func deletes(p *work.Pairs, st peers.Store, name string, reference bool, remove func([]uint64) int) *contest.Subject {
	n, deleted := st.Len(), 0
	return &contest.Subject{
		System: name, Reference: reference, Whole: true,
		Do: func(ops int) error { deleted = remove(p.Keys[:ops]); return nil },
		Check: func(ops int) error {
			if deleted != ops {
				return fmt.Errorf("%d keys deleted of %d", deleted, ops)
			}
			err := errors.Join(work.CheckLen(st, n-ops), p.Check(st, ops, false))
			return errors.Join(err, st.Set(p.Keys[:ops], p.Vals[:ops]))
		},
	}
}
