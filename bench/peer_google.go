package main

import (
	"github.com/google/btree"
)

// googleDegree is the degree that google/btree's own benchmarks use.
const googleDegree = 32

// googleG is google/btree's BTreeG.
type googleG[W word] struct {
	heapBuilt
	tree *btree.BTreeG[pair[W]]
}

func makeGoogle[W word]() maker[W] {
	return maker[W]{name: nameGoogle, peak: treePeak * pairBytes[W](), build: func(d *dataset[W]) (system[W], error) {
		sys := &googleG[W]{}
		grown := heapGrowth(func() { sys.tree = loadGoogle(d) })
		sys.perEntry = grown / float64(len(d.keys))
		return sys, nil
	}}
}

func loadGoogle[W word](d *dataset[W]) *btree.BTreeG[pair[W]] {
	tree := btree.NewG(googleDegree, lessPair[W])
	for i, k := range d.keys {
		tree.ReplaceOrInsert(pair[W]{k, d.vals[i]})
	}
	return tree
}

func (t *googleG[W]) Name() string { return nameGoogle }
func (t *googleG[W]) Close()       { t.tree = nil }

func (t *googleG[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		p, ok := t.tree.Get(pair[W]{key: k})
		vals[i], found[i] = p.val, ok
		if ok {
			hits++
		}
	}
	return hits
}

func (t *googleG[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		p, ok := t.tree.Get(pair[W]{key: k})
		vals[i] = p.val
		if ok {
			hits++
		}
	}
	return hits
}

func (t *googleG[W]) Chain(q, vals []W, mask W) (hits int) {
	var p pair[W]
	var ok bool
	for i, k := range q {
		p, ok = t.tree.Get(pair[W]{key: k ^ p.val&mask})
		vals[i] = p.val
		if ok {
			hits++
		}
	}
	return hits
}

func (t *googleG[W]) Ranges(lo, hi []W, out *flat[W]) {
	out.clear()
	for i, from := range lo {
		to := hi[i]
		t.tree.AscendGreaterOrEqual(pair[W]{key: from}, func(p pair[W]) bool {
			if p.key > to {
				return false
			}
			out.keys, out.vals = append(out.keys, p.key), append(out.vals, p.val)
			return true
		})
		out.ends = append(out.ends, len(out.keys))
	}
}

func (t *googleG[W]) Scan() (keySum, valSum W) {
	t.tree.Ascend(func(p pair[W]) bool {
		keySum, valSum = keySum+p.key, valSum+p.val
		return true
	})
	return keySum, valSum
}
