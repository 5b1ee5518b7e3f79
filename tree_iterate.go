package pando

import (
	"iter"

	"github.com/pando-index/pando/internal/index"
)

// All iterates over all entries in key order. Others may change the tree
// meanwhile: each key that is yielded is the least one above the last that is
// there at that time.
func (t *Tree[K, V]) All() iter.Seq2[K, V] { return t.each(reach[K]{}) }

// Backward iterates over all entries in reverse key order, as All does.
func (t *Tree[K, V]) Backward() iter.Seq2[K, V] { return t.each(reach[K]{what: index.ReachDown}) }

// Range iterates over the entries with lo <= key <= hi, in key order, as All
// does. There are none if lo is above hi.
func (t *Tree[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return t.each(reach[K]{what: index.ReachRange, lo: lo, hi: hi})
}

// Prefix iterates over the entries whose key starts with p, in key order, as All
// does: over all of them where p is empty. Keys must be strings: it panics if they
// are not.
func (t *Tree[K, V]) Prefix(p K) iter.Seq2[K, V] {
	t.c.Key.MustHavePrefixes("Prefix")
	return t.each(reach[K]{what: index.ReachPrefix, lo: p})
}

// Scan iterates over the entries that options leave, as Frozen.Scan does, and as
// All does while others change the tree.
func (t *Tree[K, V]) Scan(opts ...ScanOption) iter.Seq2[K, V] {
	return t.each(reach[K]{what: index.ReachScan, scan: scanOf(t.c.Key, opts)})
}
