package pando

import "github.com/pando-index/pando/internal/index"

// These functions look up string keys by slices of bytes. The bytes are read
// only during the call.

// GetBytes is Get for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) GetBytes(key []byte) (V, bool) {
	x, ok := t.c.Get(t.c.Key.Text("GetBytes", key))
	return index.ValueAs[V](x), ok
}

// HasBytes is Has for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) HasBytes(key []byte) bool {
	return t.c.Has(t.c.Key.Text("HasBytes", key))
}

// RankBytes is Rank for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) RankBytes(key []byte) int {
	return t.c.Rank(t.c.Key.Text("RankBytes", key))
}

// SetBytes is Set for a key that is a slice of bytes, of which the tree keeps a
// copy. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) SetBytes(key []byte, val V) error {
	return t.c.Set(t.c.Key.Text("SetBytes", key), t.bare(val))
}

// SwapBytes is Swap for a key that is a slice of bytes, of which the tree keeps a
// copy. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) SwapBytes(key []byte, val V) (old V, had bool, err error) {
	x, had, err := t.c.Swap(t.c.Key.Text("SwapBytes", key), t.bare(val))
	return index.ValueAs[V](x), had, err
}

// UpdateBytes is Update for a key that is a slice of bytes, which f must not change.
// The tree keeps a copy of it. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) UpdateBytes(key []byte, f func(old V, had bool) (val V, keep bool)) error {
	return t.update(t.c.Key.Text("UpdateBytes", key), f)
}

// DeleteBytes is Delete for a key that is a slice of bytes. Keys must be strings: it
// panics if they are not.
func (t *Tree[K, V]) DeleteBytes(key []byte) (old V, had bool) {
	x, had := t.c.Delete(t.c.Key.Text("DeleteBytes", key))
	return index.ValueAs[V](x), had
}

// SetBatchBytes is SetBatch for string keys that lie one behind the other, as those
// of Frozen.GetBatchBytes do. The tree keeps copies of them.
func (t *Tree[K, V]) SetBatchBytes(data []byte, offsets []int32, vals []V) error {
	return t.c.SetBatch(t.c.Key.Texts("SetBatchBytes", data, offsets, t.c.Open().Workers()), index.ColumnOf(vals))
}

// DeleteBatchBytes is DeleteBatch for string keys that lie one behind the other, as
// those of Frozen.GetBatchBytes do.
func (t *Tree[K, V]) DeleteBatchBytes(data []byte, offsets []int32, found []bool) (deleted int) {
	return t.c.DeleteBatch(t.c.Key.Texts("DeleteBatchBytes", data, offsets, t.c.Open().Workers()), found)
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Frozen.GetBatchBytes is.
func (t *Tree[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	return t.c.GetPacked(data, offsets, index.ColumnOf(vals), found)
}
