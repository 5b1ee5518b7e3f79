package peers

import (
	"github.com/google/btree"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// googleDegree is the degree that google/btree's own benchmarks use.
const googleDegree = 32

// googleG is google/btree's BTreeG.
type googleG[W data.Word] struct {
	heapBuilt
	tree *btree.BTreeG[pair[W]]
}

// MakeGoogle returns google/btree's BTreeG.
func MakeGoogle[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameGoogle, Peak: treePeak * data.PairBytes[W](), Build: func(d *data.Dataset[W]) (System[W], error) {
		sys := &googleG[W]{}
		grown := contest.HeapGrowth(func() { sys.tree = loadGoogle(d) })
		sys.perEntry = grown / float64(len(d.Keys))
		return sys, nil
	}}
}

func loadGoogle[W data.Word](d *data.Dataset[W]) *btree.BTreeG[pair[W]] {
	tree := btree.NewG(googleDegree, lessPair[W])
	for i, k := range d.Keys {
		tree.ReplaceOrInsert(pair[W]{k, d.Vals[i]})
	}
	return tree
}

func (t *googleG[W]) Name() string { return NameGoogle }

func (t *googleG[W]) Close() { t.tree = nil }

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

func (t *googleG[W]) Ranges(lo, hi []W, out *Flat[W]) {
	out.clear()
	for i, from := range lo {
		to := hi[i]
		t.tree.AscendGreaterOrEqual(pair[W]{key: from}, func(p pair[W]) bool {
			if p.key > to {
				return false
			}
			out.Keys, out.Vals = append(out.Keys, p.key), append(out.Vals, p.val)
			return true
		})
		out.Ends = append(out.Ends, len(out.Keys))
	}
}

func (t *googleG[W]) Scan() (keySum, valSum W) {
	t.tree.Ascend(func(p pair[W]) bool {
		keySum, valSum = keySum+p.key, valSum+p.val
		return true
	})
	return keySum, valSum
}
