package tree

import (
	"errors"
	"runtime"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var snapshotExp = &contest.Experiment{
	Name:     "snapshot",
	About:    "Snapshot of a Tree and Copy of tidwall's Map; Set after it; Freeze of a live tree",
	Per:      "one snapshot; one new key set after one; one entry frozen",
	CaseName: "what",
	Sizes:    contest.UsualSizes,
	Run:      runSnapshot,
}

const (
	snapshotsPerRound = 64
	setsAfterSnapshot = contest.Mega
)

func runSnapshot(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		stores, err := peers.BuildStores(s, len(d.Keys), []peers.StoreMaker{ours.MakeTreeStore(1), peers.MakeTidwallStore()}, g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		pairs := work.NewPairs(s, min(setsAfterSnapshot, s.Queries))
		take := &contest.Contest{N: len(d.Keys), Threads: 1, Label: "snapshot", Ops: snapshotsPerRound, Fresh: pairs.Fresh}
		alone := &contest.Contest{N: len(d.Keys), Threads: 1, Label: "Set without", Ops: len(pairs.Keys), Fresh: pairs.Fresh}
		after := &contest.Contest{N: len(d.Keys), Threads: 1, Label: "Set after", Ops: len(pairs.Keys), Fresh: pairs.Fresh}
		for i, st := range stores {
			st := st.(peers.Snapshotter)
			take.Subjects = append(take.Subjects, snapshots(pairs, st, i == 0))
			alone.Subjects = append(alone.Subjects, setsBeside(pairs, st, false, i == 0))
			after.Subjects = append(after.Subjects, setsBeside(pairs, st, true, i == 0))
		}
		for _, c := range []*contest.Contest{take, alone, after} {
			if err := s.Compete(c); err != nil {
				return err
			}
		}
		return freezeContests(s, d, stores[0].(*ours.TreeStore))
	})
}

// snapshots is a store of which snapshots are taken one after the other, with a
// change before each.
func snapshots(p *work.Pairs, st peers.Snapshotter, reference bool) *contest.Subject {
	var drops []func()
	var took time.Duration
	return &contest.Subject{
		System: st.Name(), Reference: reference, Whole: true,
		Do: func(ops int) error {
			took = 0
			for i := range ops {
				at := i % len(p.Keys)
				if err := st.Set(p.Keys[at:at+1], p.Vals[at:at+1]); err != nil {
					return err
				}
				start := time.Now()
				drop := st.Snapshot()
				took += time.Since(start)
				drops = append(drops, drop)
			}
			return nil
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error {
			for _, drop := range drops {
				drop()
			}
			drops = nil
			return p.Delete(st, min(ops, len(p.Keys)))
		},
		Reset: runtime.GC,
	}
}

// setsBeside is a store that takes the pairs of a round while a snapshot of the
// moment before is kept, or without one. They are taken out again.
func setsBeside(p *work.Pairs, st peers.Snapshotter, keep, reference bool) *contest.Subject {
	n := st.Len()
	var took time.Duration
	drop := func() {}
	return &contest.Subject{
		System: st.Name(), Reference: reference, Whole: true,
		Do: func(ops int) error {
			if keep {
				drop = st.Snapshot()
			}
			start := time.Now()
			err := st.Set(p.Keys[:ops], p.Vals[:ops])
			took = time.Since(start)
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error {
			drop()
			err := errors.Join(work.CheckLen(st, n+ops), p.Check(st, ops, true))
			return errors.Join(err, p.Delete(st, ops))
		},
		Reset: runtime.GC, // nodes copied are garbage, and the collector is off
	}
}

// freezeContests compares a Freeze of a live tree with one of sorted pairs.
func freezeContests(s *contest.Session, d *data.Dataset[uint64], t *ours.TreeStore) error {
	for _, threads := range contest.OneAndAll() {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: "Freeze", Ops: len(d.Keys)}
		for i, b := range []peers.Builder[uint64]{
			{Name: "Pando Freeze, sorted pairs", Make: ours.FreezeOnce[uint64]},
			{Name: "Pando Freeze, live Tree", Make: func(_ *data.Dataset[uint64], threads int) (peers.Made[uint64], error) { return t.Freeze(threads) }},
		} {
			sub := work.BuildSubject(s, d, b, threads)
			sub.Reference = i == 0
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
