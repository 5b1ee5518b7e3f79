package ours

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/peers"
)

// TreeStore is Pando's mutable tree.
type TreeStore struct {
	name    string
	workers int
	Tree    *pando.Tree[uint64, uint64]
}

// MakeTreeStore returns a tree that uses some workers.
func MakeTreeStore(workers int) peers.StoreMaker {
	return peers.StoreMaker{Name: NameTree, Peak: 32, Make: func() (peers.Store, error) { return NewTreeStore(workers) }}
}

// NewTreeStore returns an empty tree.
func NewTreeStore(workers int) (*TreeStore, error) {
	t, err := pando.NewTree[uint64, uint64](pando.On(pando.CPU), pando.Workers(workers))
	return &TreeStore{NameTree, workers, t}, err
}

// StoreOf returns a tree that is there already as a store.
func StoreOf(name string, tree *pando.Tree[uint64, uint64]) *TreeStore {
	return &TreeStore{name: name, Tree: tree}
}

// Name returns the name of its row.
func (t *TreeStore) Name() string { return t.name }

// Len returns the number of entries.
func (t *TreeStore) Len() int { return t.Tree.Len() }

// Bytes returns the memory that it takes.
func (t *TreeStore) Bytes() int64 { return t.Tree.Stats().TotalBytes }

// Close frees what it holds.
func (t *TreeStore) Close() { t.Tree.Close() } // frees memory; there is nothing to lose

// Shared says that several goroutines may change it at a time.
func (t *TreeStore) Shared() {}

// Load takes the place of what was there.
func (t *TreeStore) Load(keys, vals []uint64) error {
	t.Tree.Close()
	var err error
	t.Tree, err = pando.TreeOf(keys, vals, pando.On(pando.CPU), pando.Workers(t.workers))
	return err
}

// Set makes one call a key.
func (t *TreeStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		if err := t.Tree.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

// SetBatch sets all keys with one call.
func (t *TreeStore) SetBatch(keys, vals []uint64) error { return t.Tree.SetBatch(keys, vals) }

// SetBatches does the same in batches.
func (t *TreeStore) SetBatches(keys, vals []uint64, batch int) error {
	for lo := 0; lo < len(keys); lo += batch {
		hi := min(lo+batch, len(keys))
		if err := t.Tree.SetBatch(keys[lo:hi], vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// Get answers a batch, and counts the hits.
func (t *TreeStore) Get(q, vals []uint64, found []bool) (hits int) {
	return t.Tree.GetBatch(q, vals, found)
}

// DeleteBatch deletes all keys with one call.
func (t *TreeStore) DeleteBatch(keys []uint64) (deleted int) { return t.Tree.DeleteBatch(keys, nil) }

// Delete makes one call a key, and counts those that were there.
func (t *TreeStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if _, ok := t.Tree.Delete(k); ok {
			deleted++
		}
	}
	return deleted
}

// Scan goes through all entries, and returns sums of what it has seen.
func (t *TreeStore) Scan() (keySum, valSum uint64) {
	for k, v := range t.Tree.All() {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

// Walk goes through n entries from a key on.
func (t *TreeStore) Walk(from uint64, n int) (keySum, valSum uint64) {
	for k, v := range t.Tree.Range(from, ^uint64(0)) {
		keySum, valSum = keySum+k, valSum+v
		if n--; n <= 0 {
			break
		}
	}
	return keySum, valSum
}

// Snapshot takes a snapshot, which drop forgets.
func (t *TreeStore) Snapshot() (drop func()) {
	f := t.Tree.Snapshot()
	return func() { f.Close() }
}

// Freeze makes a Frozen of the live tree.
func (t *TreeStore) Freeze(workers int) (peers.Made[uint64], error) {
	ix, err := t.Tree.Freeze(pando.On(pando.CPU), pando.Workers(workers))
	if err != nil {
		return peers.Made[uint64]{}, err
	}
	return peers.Made[uint64]{Entries: ix.Len(), Get: ix.Get, Close: func() { ix.Close() }}, nil
}
