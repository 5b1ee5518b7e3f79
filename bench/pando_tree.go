package main

import (
	"github.com/pando-index/pando"
)

// The names of the mutable tree's rows.
const (
	namePandoTree     = "Pando Tree"
	namePandoSetBatch = "Pando SetBatch"
)

// treeStore is Pando's mutable tree.
type treeStore struct {
	name    string
	workers int
	tree    *pando.Tree[uint64, uint64]
}

func makeTreeStore(workers int) storeMaker {
	return storeMaker{namePandoTree, 32, func() (store, error) { return newTreeStore(workers) }}
}

func newTreeStore(workers int) (*treeStore, error) {
	t, err := pando.NewTree[uint64, uint64](pando.On(pando.CPU), pando.Workers(workers))
	return &treeStore{namePandoTree, workers, t}, err
}

func (t *treeStore) Name() string { return t.name }
func (t *treeStore) Len() int     { return t.tree.Len() }
func (t *treeStore) Bytes() int64 { return t.tree.Stats().TotalBytes }
func (t *treeStore) Close()       { t.tree.Close() } // frees memory; there is nothing to lose
func (t *treeStore) Shared()      {}

// Load takes the place of what was there.
func (t *treeStore) Load(keys, vals []uint64) error {
	t.tree.Close()
	var err error
	t.tree, err = pando.TreeOf(keys, vals, pando.On(pando.CPU), pando.Workers(t.workers))
	return err
}

func (t *treeStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		if err := t.tree.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeStore) SetBatch(keys, vals []uint64) error { return t.tree.SetBatch(keys, vals) }

// SetBatches does the same in batches.
func (t *treeStore) SetBatches(keys, vals []uint64, batch int) error {
	for lo := 0; lo < len(keys); lo += batch {
		hi := min(lo+batch, len(keys))
		if err := t.tree.SetBatch(keys[lo:hi], vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeStore) Get(q, vals []uint64, found []bool) (hits int) {
	return t.tree.GetBatch(q, vals, found)
}

func (t *treeStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if _, ok := t.tree.Delete(k); ok {
			deleted++
		}
	}
	return deleted
}

func (t *treeStore) Scan() (keySum, valSum uint64) {
	for k, v := range t.tree.All() {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

func (t *treeStore) Walk(from uint64, n int) (keySum, valSum uint64) {
	for k, v := range t.tree.Range(from, ^uint64(0)) {
		keySum, valSum = keySum+k, valSum+v
		if n--; n <= 0 {
			break
		}
	}
	return keySum, valSum
}

// snapshot takes a snapshot, which drop forgets.
func (t *treeStore) snapshot() (drop func()) {
	f := t.tree.Snapshot()
	return func() { f.Close() }
}

// freeze makes a Frozen of the live tree.
func (t *treeStore) freeze(workers int) (made[uint64], error) {
	ix, err := t.tree.Freeze(pando.On(pando.CPU), pando.Workers(workers))
	if err != nil {
		return made[uint64]{}, err
	}
	return made[uint64]{entries: ix.Len(), get: ix.Get, close: func() { ix.Close() }}, nil
}

// apply does operations of a workload in one batch. Only reads have a result in
// got.
func (t *applyStore) apply(ops []mixOp, keys, vals, got []uint64) error {
	kinds, found := make([]pando.Op, len(ops)), make([]bool, len(ops))
	for i, op := range ops {
		kinds[i] = pando.OpSet
		if op == mixRead {
			kinds[i] = pando.OpGet
		}
	}
	copy(got, vals)
	err := t.tree.Apply(kinds, keys, got, found)
	for i, op := range ops {
		if op != mixRead {
			got[i] = 0
		}
	}
	return err
}
