package main

import (
	"errors"
	"sync/atomic"
)

var writersExp = &experiment{
	name:    "writers",
	about:   "Set of new random keys by 1 to 16 goroutines at once",
	per:     "one new key set, all goroutines together",
	sizes:   usualSizes,
	threads: []int{1, 2, 4, 8, 16},
	extra:   []extraColumn{{colSpeedup, ratio}},
	run:     runWriters,
}

func runWriters(s *session) error {
	err := forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		makers := []storeMaker{makeTreeStore(allCores()), makeSkipStore(), makeTidwallLockStore()}
		stores, err := buildStores(s, len(d.keys), makers, g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		pairs := newNewPairs(s, s.changesOf(len(d.keys)))
		for _, threads := range s.threads {
			c := &contest{n: len(d.keys), threads: threads, ops: len(pairs.keys), fresh: pairs.fresh}
			for i, st := range stores {
				c.subjects = append(c.subjects, pairs.insertsBy(st.(sharedStore), threads, i == 0))
			}
			if err := s.compete(c); err != nil {
				return err
			}
		}
		return nil
	})
	s.compareTo(colSpeedup, func(r *row) bool { return r.Threads == s.threads[0] },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N })
	return err
}

// insertsBy is a store that takes the pairs of a round from several goroutines.
// They are taken out again.
func (p *newPairs) insertsBy(st sharedStore, threads int, reference bool) *subject {
	n := st.Len()
	return &subject{
		system: st.Name(), reference: reference, whole: true,
		do: func(ops int) error {
			var failed atomic.Pointer[error]
			spread(threads, ops, func(lo, hi int) int {
				if err := st.Set(p.keys[lo:hi], p.vals[lo:hi]); err != nil {
					failed.Store(&err)
				}
				return 0
			})
			if err := failed.Load(); err != nil {
				return *err
			}
			return nil
		},
		check: func(ops int) error {
			err := errors.Join(checkLen(st, n+ops), p.check(st, ops, true))
			return errors.Join(err, p.delete(st, ops))
		},
	}
}
