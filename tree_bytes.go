package pando

import "github.com/pando-index/pando/internal/index"

// What follows is for keys that are strings, asked for by slices of bytes. The
// bytes are looked at only during the call.

// GetBytes is Get for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) GetBytes(key []byte) (V, bool) {
	x, ok := t.c.get(t.c.textOf("GetBytes", key))
	return index.ValueAs[V](x), ok
}

// HasBytes is Has for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) HasBytes(key []byte) bool {
	return t.c.has(t.c.textOf("HasBytes", key))
}

// RankBytes is Rank for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) RankBytes(key []byte) int {
	return t.c.rank(t.c.textOf("RankBytes", key))
}

// SetBytes is Set for a key that is a slice of bytes, of which the tree keeps a
// copy. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) SetBytes(key []byte, val V) error {
	return t.c.set(t.c.textOf("SetBytes", key), t.bare(val))
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Frozen.GetBatchBytes is.
func (t *Tree[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	return t.c.getPacked(data, offsets, index.ColumnOf(vals), found)
}
