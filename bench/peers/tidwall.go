package peers

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/tidwall/btree"
)

// The peers are built as their own documentation recommends for sorted input,
// and queried without locks where they offer the choice. Their loops are
// written out for each, so that no call is more expensive than a user's would
// be.

// tidwallMap is tidwall/btree's Map, at its default degree.
type tidwallMap[W data.Word] struct {
	heapBuilt
	tree *btree.Map[W, W]
}

// MakeTidwallMap returns tidwall/btree's Map.
func MakeTidwallMap[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameTidwallMap, Peak: treePeak * data.PairBytes[W](), Build: func(d *data.Dataset[W]) (System[W], error) {
		sys := &tidwallMap[W]{}
		grown := contest.HeapGrowth(func() { sys.tree = loadTidwallMap(d) })
		sys.perEntry = grown / float64(len(d.Keys))
		return sys, nil
	}}
}

func loadTidwallMap[W data.Word](d *data.Dataset[W]) *btree.Map[W, W] {
	tree := new(btree.Map[W, W])
	for i, k := range d.Keys {
		tree.Load(k, d.Vals[i])
	}
	return tree
}

func (t *tidwallMap[W]) Name() string { return NameTidwallMap }

func (t *tidwallMap[W]) Close() { t.tree = nil }

func (t *tidwallMap[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		v, ok := t.tree.Get(k)
		vals[i], found[i] = v, ok
		if ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallMap[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		v, ok := t.tree.Get(k)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallMap[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	var ok bool
	for i, k := range q {
		v, ok = t.tree.Get(k ^ v&mask)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallMap[W]) Ranges(lo, hi []W, out *Flat[W]) {
	out.clear()
	for i, from := range lo {
		to := hi[i]
		t.tree.Ascend(from, func(k, v W) bool {
			if k > to {
				return false
			}
			out.Keys, out.Vals = append(out.Keys, k), append(out.Vals, v)
			return true
		})
		out.Ends = append(out.Ends, len(out.Keys))
	}
}

func (t *tidwallMap[W]) Scan() (keySum, valSum W) {
	t.tree.Scan(func(k, v W) bool {
		keySum, valSum = keySum+k, valSum+v
		return true
	})
	return keySum, valSum
}

// pair is an item of the trees that hold items rather than keys and values.
type pair[W data.Word] struct{ key, val W }

func lessPair[W data.Word](a, b pair[W]) bool { return a.key < b.key }

// tidwallG is tidwall/btree's BTreeG, at its default degree, without locks.
type tidwallG[W data.Word] struct {
	heapBuilt
	tree *btree.BTreeG[pair[W]]
}

// MakeTidwallG returns tidwall/btree's BTreeG without its lock.
func MakeTidwallG[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameTidwallG, Peak: treePeak * data.PairBytes[W](), Build: func(d *data.Dataset[W]) (System[W], error) {
		sys := &tidwallG[W]{}
		grown := contest.HeapGrowth(func() {
			sys.tree = btree.NewBTreeGOptions(lessPair[W], btree.Options{NoLocks: true})
			for i, k := range d.Keys {
				sys.tree.Load(pair[W]{k, d.Vals[i]})
			}
		})
		sys.perEntry = grown / float64(len(d.Keys))
		return sys, nil
	}}
}

func (t *tidwallG[W]) Name() string { return NameTidwallG }

func (t *tidwallG[W]) Close() { t.tree = nil }

func (t *tidwallG[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		p, ok := t.tree.Get(pair[W]{key: k})
		vals[i], found[i] = p.val, ok
		if ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallG[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		p, ok := t.tree.Get(pair[W]{key: k})
		vals[i] = p.val
		if ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallG[W]) Chain(q, vals []W, mask W) (hits int) {
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

func (t *tidwallG[W]) Ranges(lo, hi []W, out *Flat[W]) {
	out.clear()
	for i, from := range lo {
		to := hi[i]
		t.tree.Ascend(pair[W]{key: from}, func(p pair[W]) bool {
			if p.key > to {
				return false
			}
			out.Keys, out.Vals = append(out.Keys, p.key), append(out.Vals, p.val)
			return true
		})
		out.Ends = append(out.Ends, len(out.Keys))
	}
}

func (t *tidwallG[W]) Scan() (keySum, valSum W) {
	t.tree.Scan(func(p pair[W]) bool {
		keySum, valSum = keySum+p.key, valSum+p.val
		return true
	})
	return keySum, valSum
}
