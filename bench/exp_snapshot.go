package main

import (
	"errors"
	"runtime"
	"time"
)

var snapshotExp = &experiment{
	name:     "snapshot",
	about:    "Snapshot of a Tree and Copy of tidwall's Map; Set after it; Freeze of a live tree",
	per:      "one snapshot; one new key set after one; one entry frozen",
	caseName: "what",
	sizes:    usualSizes,
	run:      runSnapshot,
}

const (
	snapshotsPerRound = 64
	setsAfterSnapshot = mega
)

// snapshotter is a store that can keep its present state aside.
type snapshotter interface {
	store
	deleter
	snapshot() (drop func())
}

// snapshot of tidwall's Map is its Copy, which shares nodes until they change.
func (t *tidwallStore) snapshot() (drop func()) {
	kept := t.tree.Copy()
	return func() { runtime.KeepAlive(kept) }
}

func runSnapshot(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		stores, err := buildStores(s, len(d.keys), []storeMaker{makeTreeStore(1), makeTidwallStore()}, g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		pairs := newNewPairs(s, min(setsAfterSnapshot, s.queries))
		take := &contest{n: len(d.keys), threads: 1, label: "snapshot", ops: snapshotsPerRound, fresh: pairs.fresh}
		alone := &contest{n: len(d.keys), threads: 1, label: "Set without", ops: len(pairs.keys), fresh: pairs.fresh}
		after := &contest{n: len(d.keys), threads: 1, label: "Set after", ops: len(pairs.keys), fresh: pairs.fresh}
		for i, st := range stores {
			st := st.(snapshotter)
			take.subjects = append(take.subjects, pairs.snapshots(st, i == 0))
			alone.subjects = append(alone.subjects, pairs.setsBeside(st, false, i == 0))
			after.subjects = append(after.subjects, pairs.setsBeside(st, true, i == 0))
		}
		for _, c := range []*contest{take, alone, after} {
			if err := s.compete(c); err != nil {
				return err
			}
		}
		return freezeContests(s, d, stores[0].(*treeStore))
	})
}

// snapshots is a store of which snapshots are taken one after the other, with a
// change before each.
func (p *newPairs) snapshots(st snapshotter, reference bool) *subject {
	var drops []func()
	var took time.Duration
	return &subject{
		system: st.Name(), reference: reference, whole: true,
		do: func(ops int) error {
			took = 0
			for i := range ops {
				at := i % len(p.keys)
				if err := st.Set(p.keys[at:at+1], p.vals[at:at+1]); err != nil {
					return err
				}
				start := time.Now()
				drop := st.snapshot()
				took += time.Since(start)
				drops = append(drops, drop)
			}
			return nil
		},
		clock: func() time.Duration { return took },
		check: func(ops int) error {
			for _, drop := range drops {
				drop()
			}
			drops = nil
			return p.delete(st, min(ops, len(p.keys)))
		},
		reset: runtime.GC,
	}
}

// setsBeside is a store that takes the pairs of a round while a snapshot of the
// moment before is kept, or without one. They are taken out again.
func (p *newPairs) setsBeside(st snapshotter, keep, reference bool) *subject {
	n := st.Len()
	var took time.Duration
	drop := func() {}
	return &subject{
		system: st.Name(), reference: reference, whole: true,
		do: func(ops int) error {
			if keep {
				drop = st.snapshot()
			}
			start := time.Now()
			err := st.Set(p.keys[:ops], p.vals[:ops])
			took = time.Since(start)
			return err
		},
		clock: func() time.Duration { return took },
		check: func(ops int) error {
			drop()
			err := errors.Join(checkLen(st, n+ops), p.check(st, ops, true))
			return errors.Join(err, p.delete(st, ops))
		},
		reset: runtime.GC, // nodes copied are garbage, and the collector is off
	}
}

// freezeContests compares a Freeze of a live tree with one of sorted pairs.
func freezeContests(s *session, d *dataset[uint64], t *treeStore) error {
	for _, threads := range oneAndAll() {
		c := &contest{n: len(d.keys), threads: threads, label: "Freeze", ops: len(d.keys)}
		for i, b := range []builder[uint64]{
			{name: "Pando Freeze, sorted pairs", make: freezeOnce[uint64]},
			{name: "Pando Freeze, live Tree", make: func(_ *dataset[uint64], threads int) (made[uint64], error) { return t.freeze(threads) }},
		} {
			sub := buildSubject(s, d, b, threads)
			sub.reference = i == 0
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}
