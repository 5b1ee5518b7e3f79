package peers

import (
	"github.com/google/btree"
	"github.com/pando-index/pando/bench/data"
)

// Mixing is a store that does the operations of a workload by single calls. got
// is what each of them has found, as mix has it.
type Mixing interface {
	Store
	Mix(x *data.Mix, got []uint64) error
}

func (t *tidwallStore) Mix(x *data.Mix, got []uint64) error {
	for i, op := range x.Ops {
		k := x.Keys[i]
		got[i] = 0
		switch op {
		case data.MixRead:
			got[i], _ = t.tree.Get(k)
		case data.MixScan:
			keys, vals := t.Walk(k, int(x.Vals[i]))
			got[i] = keys + vals
		case data.MixModify:
			v, _ := t.tree.Get(k)
			t.tree.Set(k, data.Modified(v))
		default:
			t.tree.Set(k, x.Vals[i])
		}
	}
	return nil
}

func (t *googleStore) Mix(x *data.Mix, got []uint64) error {
	for i, op := range x.Ops {
		k := pair[uint64]{key: x.Keys[i]}
		got[i] = 0
		switch op {
		case data.MixRead:
			got[i] = googleValue(t.tree, k)
		case data.MixScan:
			keys, vals := t.Walk(k.key, int(x.Vals[i]))
			got[i] = keys + vals
		case data.MixModify:
			t.tree.ReplaceOrInsert(pair[uint64]{k.key, data.Modified(googleValue(t.tree, k))})
		default:
			t.tree.ReplaceOrInsert(pair[uint64]{k.key, x.Vals[i]})
		}
	}
	return nil
}

func googleValue(t *btree.BTreeG[pair[uint64]], k pair[uint64]) uint64 {
	p, _ := t.Get(k)
	return p.val
}

func (t *zStore) Mix(x *data.Mix, got []uint64) error {
	for i, op := range x.Ops {
		k := x.Keys[i]
		got[i] = 0
		switch op {
		case data.MixRead:
			got[i] = t.tree.Get(k)
		case data.MixModify:
			t.tree.Set(k, data.Modified(t.tree.Get(k)))
		default:
			t.tree.Set(k, x.Vals[i])
		}
	}
	return nil
}

func (t *skipStore) Mix(x *data.Mix, got []uint64) error {
	for i, op := range x.Ops {
		k := x.Keys[i]
		got[i] = 0
		switch op {
		case data.MixRead:
			got[i], _ = t.list.Load(k)
		case data.MixModify:
			v, _ := t.list.Load(k)
			t.list.Store(k, data.Modified(v))
		default:
			t.list.Store(k, x.Vals[i])
		}
	}
	return nil
}
