package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var setRandom = &experiment{
	name:  "set-random",
	about: "Set of new random keys, one call a key, in maps that have grown by such",
	per:   "one new key set, one after the other",
	sizes: usualSizes,
	run:   runSetRandom,
}

var setAscending = &experiment{
	name:  "set-ascending",
	about: "Set of ascending keys, one call a key, from an empty map on",
	per:   "one key set",
	sizes: []int{mega},
	run:   runSetAscending,
}

var deleteExp = &experiment{
	name:  "delete",
	about: "Delete of random keys, one call a key, and DeleteBatch",
	per:   "one key deleted",
	sizes: usualSizes,
	run:   runDelete,
}

// changedPart is the part of a map that a round changes at most: one in
// changedPart entries, so that a map stays about as large as it was.
const changedPart = 32

// changesOf returns the number of changes of a round on n entries.
func (s *session) changesOf(n int) int { return max(1, min(s.queries, n/changedPart)) }

func runSetRandom(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		stores, err := buildStores(s, len(d.keys), changeMakers(s), g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		pairs := newNewPairs(s, s.changesOf(len(d.keys)))
		c := &contest{n: len(d.keys), threads: 1, ops: len(pairs.keys), fresh: pairs.fresh}
		for i, st := range stores {
			c.subjects = append(c.subjects, pairs.inserts(st, i == 0))
		}
		return s.compete(c)
	})
}

// changeMakers returns Pando's tree and every peer, those of C++ too.
func changeMakers(s *session) []storeMaker {
	return slices.Concat([]storeMaker{makeTreeStore(1)}, peerStores(), cppStores(s))
}

// inserts is a store that takes the pairs of each round, and keeps them.
func (p *newPairs) inserts(st store, reference bool) *subject {
	want := st.Len()
	return &subject{
		system: st.Name(), reference: reference, whole: true, clock: clockOf(st),
		do: func(ops int) error { return st.Set(p.keys[:ops], p.vals[:ops]) },
		check: func(ops int) error {
			want += ops
			return errors.Join(checkLen(st, want), p.check(st, ops, true))
		},
	}
}

func runSetAscending(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		c := &contest{n: len(d.keys), threads: 1, ops: len(d.keys)}
		for i, m := range changeMakers(s) {
			if s.fits(m.name, len(d.keys), 2*m.peak) {
				c.subjects = append(c.subjects, fills(s, d, m, m.name, i == 0, store.Set))
			}
		}
		return s.compete(c)
	})
}

// fills is a store that is made anew each round.
func fills(s *session, d *dataset[uint64], m storeMaker, name string, reference bool,
	set func(st store, keys, vals []uint64) error) *subject {
	var st store
	var took time.Duration
	return &subject{
		system: name, reference: reference, whole: true,
		do: func(int) (err error) {
			start := time.Now()
			st, err = makeStore(m, func(st store) error { return set(st, d.keys, d.vals) })
			took = time.Since(start)
			if clock := clockOf(st); err == nil && clock != nil {
				took = clock()
			}
			return err
		},
		clock: func() time.Duration { return took },
		check: func(int) error {
			made := made[uint64]{entries: st.Len(), get: getOne(st)}
			return made.check(s, d)
		},
		reset: func() {
			if st != nil {
				closeStores([]store{st})
			}
		},
	}
}

// getOne looks up single keys, for checks.
func getOne(st store) func(uint64) (uint64, bool) {
	return func(k uint64) (uint64, bool) {
		val, found := []uint64{0}, []bool{false}
		st.Get([]uint64{k}, val, found)
		return val[0], found[0]
	}
}

func runDelete(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		makers := []storeMaker{makeTreeStore(1), makeTidwallStore(), makeGoogleStore(), makeSkipStore()}
		stores, err := buildStores(s, len(d.keys), makers, g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		pairs := newNewPairs(s, s.changesOf(len(d.keys)))
		from := d.shuffled(s.seed)
		c := &contest{n: len(d.keys), threads: 1, ops: len(pairs.keys), fresh: func(round int) { pairs.take(from, round) }}
		for i, st := range stores {
			c.subjects = append(c.subjects, pairs.deletes(st, st.Name(), i == 0, st.(deleter).Delete))
			if t, ok := st.(*treeStore); ok {
				batch := func(keys []uint64) int { return t.tree.DeleteBatch(keys, nil) }
				c.subjects = append(c.subjects, pairs.deletes(st, "Pando DeleteBatch", false, batch))
			}
		}
		return s.compete(c)
	})
}

// take takes the keys of a round from shuffled ones, others each round.
func (p *newPairs) take(from *dataset[uint64], round int) {
	at := (round + 1) * len(p.keys) % len(from.keys)
	for i := range p.keys {
		j := (at + i) % len(from.keys)
		p.keys[i], p.vals[i] = from.keys[j], from.vals[j]
	}
}

// deletes is a store that loses the keys of a round, and then gets them back.
func (p *newPairs) deletes(st store, name string, reference bool, remove func([]uint64) int) *subject {
	n, deleted := st.Len(), 0
	return &subject{
		system: name, reference: reference, whole: true,
		do: func(ops int) error { deleted = remove(p.keys[:ops]); return nil },
		check: func(ops int) error {
			if deleted != ops {
				return fmt.Errorf("%d keys deleted of %d", deleted, ops)
			}
			err := errors.Join(checkLen(st, n-ops), p.check(st, ops, false))
			return errors.Join(err, st.Set(p.keys[:ops], p.vals[:ops]))
		},
	}
}
