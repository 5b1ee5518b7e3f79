package ours

import (
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// ApplyStore is Pando's tree that does the operations by Apply, in
// batches.
type ApplyStore struct{ *TreeStore }

const applyBatch = 64 * contest.Kilo

// Name returns the name of its row.
func (t *ApplyStore) Name() string {
	return fmt.Sprintf("Pando Apply, %s a batch", contest.SizeText(applyBatch))
}

// Mix does the operations of a workload by single calls.
func (t *ApplyStore) Mix(x *data.Mix, got []uint64) error {
	for lo := 0; lo < len(x.Ops); lo += applyBatch {
		hi := min(lo+applyBatch, len(x.Ops))
		if err := t.apply(x.Ops[lo:hi], x.Keys[lo:hi], x.Vals[lo:hi], got[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// Mix does the operations of a workload by single calls.
func (t *TreeStore) Mix(x *data.Mix, got []uint64) error {
	tree := t.Tree
	for i, op := range x.Ops {
		k := x.Keys[i]
		got[i] = 0
		switch op {
		case data.MixRead:
			got[i], _ = tree.Get(k)
		case data.MixScan:
			keys, vals := t.Walk(k, int(x.Vals[i]))
			got[i] = keys + vals
		case data.MixModify:
			if err := tree.Update(k, func(old uint64, _ bool) (uint64, bool) { return data.Modified(old), true }); err != nil {
				return err
			}
		default:
			if err := tree.Set(k, x.Vals[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply does operations of a workload in one batch. Only reads have a result in
// got.
func (t *ApplyStore) apply(ops []data.MixOp, keys, vals, got []uint64) error {
	kinds, found := make([]pando.Op, len(ops)), make([]bool, len(ops))
	for i, op := range ops {
		kinds[i] = pando.OpSet
		if op == data.MixRead {
			kinds[i] = pando.OpGet
		}
	}
	copy(got, vals)
	err := t.Tree.Apply(kinds, keys, got, found)
	for i, op := range ops {
		if op != data.MixRead {
			got[i] = 0
		}
	}
	return err
}
