package main

import (
	"errors"
	"time"
)

var setBatch = &experiment{
	name:     "set-batch",
	about:    "SetBatch of 1K to 16M new random keys, against one Set a key of tidwall's Map and of Pando",
	per:      "one new key set",
	caseName: "batch",
	sizes:    []int{16 * mega},
	threads:  oneAndAll(),
	extra:    []extraColumn{{colSpeedup, ratio}},
	run:      runSetBatch,
}

// setBatchSizes are the keys of a batch.
var setBatchSizes = []int{kilo, 64 * kilo, mega, 16 * mega}

// leastBatched is the number of keys that a round sets at least: small batches
// are done one after the other until there are as many.
const leastBatched = 64 * kilo

// oneAndAll returns 1 and the number of cores.
func oneAndAll() []int {
	if n := allCores(); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

func runSetBatch(s *session) error {
	err := forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		peers, err := buildStores(s, len(d.keys), []storeMaker{makeTidwallStore()}, g.grow)
		if err != nil {
			return err
		}
		defer closeStores(peers)
		for i, threads := range s.threads {
			if i > 0 {
				closeStores(peers)
				peers = nil
			}
			if err := setBatchContests(s, d, g, threads, peers); err != nil {
				return err
			}
		}
		return nil
	})
	s.compareTo(colSpeedup, func(r *row) bool { return r.Threads == s.threads[0] },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N && a.Case == b.Case })
	return err
}

// setBatchContests measures one number of workers.
func setBatchContests(s *session, d *dataset[uint64], g growth, threads int, peers []store) error {
	tree, err := newTreeStore(threads)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := g.growBatches(tree); err != nil {
		return err
	}
	for _, batch := range setBatchSizes {
		if batch > len(d.keys) && batch > setBatchSizes[0] {
			continue
		}
		pairs := newNewPairs(s, max(batch, min(leastBatched, s.queries)))
		c := &contest{n: len(d.keys), threads: threads, label: sizeText(batch), ops: len(pairs.keys), fresh: pairs.fresh}
		c.subjects = append(c.subjects, pairs.batches(g, tree, batch))
		if threads == s.threads[0] {
			for _, st := range append(peers[:len(peers):len(peers)], tree) {
				c.subjects = append(c.subjects, pairs.sets(st))
			}
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// batches is a tree that takes the pairs of a round in batches. They are taken
// out again; and where they are many, so that the tree would not be what it was,
// it is made anew before each round.
func (p *newPairs) batches(g growth, t *treeStore, batch int) *subject {
	n := t.Len()
	var took time.Duration
	return &subject{
		system: namePandoSetBatch, reference: true, whole: true,
		do: func(ops int) error {
			if ops > n/16 {
				if err := g.growBatches(t); err != nil {
					return err
				}
			}
			start := time.Now()
			err := t.SetBatches(p.keys[:ops], p.vals[:ops], batch)
			took = time.Since(start)
			return err
		},
		clock: func() time.Duration { return took },
		check: func(ops int) error {
			err := errors.Join(checkLen(t, n+ops), p.check(t, ops, true))
			return errors.Join(err, p.delete(t, ops))
		},
	}
}

// sets is a store that takes the pairs of a round one by one, or as many as it
// can in the time of a round. They are taken out again.
func (p *newPairs) sets(st store) *subject {
	n, name := st.Len(), st.Name()
	if isPando(name) {
		name += ", Set"
	}
	return &subject{
		system: name,
		do:     func(ops int) error { return st.Set(p.keys[:ops], p.vals[:ops]) },
		check: func(ops int) error {
			err := errors.Join(checkLen(st, n+ops), p.check(st, ops, true))
			return errors.Join(err, p.delete(st, ops))
		},
	}
}
