package pando

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// What follows is for keys that are strings, asked for by slices of bytes. The
// bytes are looked at only during the call.

// GetBytes is Get for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) GetBytes(key []byte) (V, bool) {
	t.mustTakeBytes("GetBytes")
	x, ok := t.open().Get(order.Probe{Text: view(key)})
	v := index.ValueAs[V](x)
	t.done()
	return v, ok
}

// HasBytes is Has for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) HasBytes(key []byte) bool {
	t.mustTakeBytes("HasBytes")
	ok := t.open().Has(order.Probe{Text: view(key)})
	t.done()
	return ok
}

// RankBytes is Rank for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) RankBytes(key []byte) int {
	t.mustTakeBytes("RankBytes")
	n := t.open().Rank(order.Probe{Text: view(key)}, false)
	t.done()
	return n
}

// SetBytes is Set for a key that is a slice of bytes, of which the tree keeps a
// copy. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) SetBytes(key []byte, val V) error {
	t.mustTakeBytes("SetBytes")
	return t.failed(t.m.Set(order.Probe{Text: view(key)}, index.ValueOf(t.kept, val)))
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Frozen.GetBatchBytes is.
func (t *Tree[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	t.mustTakeBytes("GetBatchBytes")
	m := t.open()
	vals, found = results("GetBatchBytes", vals, found, mustSpan(data, offsets, m.Workers()))
	hits = m.GetPacked(data, offsets, index.ColumnOf(vals), found)
	t.done()
	return hits
}

func (t *Tree[K, V]) mustTakeBytes(method string) {
	if t.key.Bits() != 0 {
		panic("pando: " + method + ": only strings can be looked up by bytes, and the keys of this tree are " + t.key.Name)
	}
}
