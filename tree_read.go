package pando

import (
	"io"
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Index is the interface of both Frozen and Tree, for programs that only read.
type Index[K Key, V any] interface {
	Len() int
	Get(key K) (V, bool)
	Has(key K) bool
	GetBatch(keys []K, vals []V, found []bool) (hits int)
	Rank(key K) int
	RankBatch(keys []K, ranks []int)
	At(i int) (K, V)
	Min() (K, V, bool)
	Max() (K, V, bool)
	Floor(key K) (K, V, bool)
	Ceil(key K) (K, V, bool)
	All() iter.Seq2[K, V]
	Backward() iter.Seq2[K, V]
	Range(lo, hi K) iter.Seq2[K, V]
	Scan(opts ...ScanOption) iter.Seq2[K, V]
	Cursor() Cursor[K, V]
	Count(lo, hi K) int
	CountBatch(lo, hi []K, counts []int)
	RangeBatch(lo, hi []K, limit int) *Ranges[K, V]
	Prefix(p K) iter.Seq2[K, V]
	PrefixCount(p K) int
	Save(path string) error
	WriteTo(w io.Writer) (int64, error)
	Stats() Stats
	String() string
	Close() error
}

// Both are an Index. A function of type parameters is checked and not compiled.
func _[K Key, V any]() {
	var (
		_ Index[K, V] = (*Frozen[K, V])(nil)
		_ Index[K, V] = (*Tree[K, V])(nil)
	)
}

// GetBatch looks up many keys at once, as Frozen.GetBatch does. Each answer was
// right at some time during the call.
func (t *Tree[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	return t.c.GetBatch(t.keys(keys), index.ColumnOf(vals), found)
}

// Has reports whether there is an entry with the key.
func (t *Tree[K, V]) Has(key K) bool { return t.c.Has(t.probe(key)) }

// Rank returns the number of entries with a key below key. It is exact if no
// writer runs meanwhile. The first call after writes counts the changed part of
// the tree.
func (t *Tree[K, V]) Rank(key K) int { return t.c.Rank(t.probe(key)) }

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (t *Tree[K, V]) RankBatch(keys []K, ranks []int) { t.c.RankBatch(t.keys(keys), ranks) }

// At returns entry i in key order. It is exact if no writer runs meanwhile. It
// panics if i is not in [0, Len).
func (t *Tree[K, V]) At(i int) (K, V) {
	k, v, _ := t.entry(t.c.MustAt(i))
	return k, v
}

// Count returns the number of entries with lo <= key <= hi. It is exact if no
// writer runs meanwhile.
func (t *Tree[K, V]) Count(lo, hi K) int { return t.c.Count(t.probe(lo), t.probe(hi)) }

// CountBatch sets counts[i] to Count(lo[i], hi[i]). lo and hi must be of the
// same length, counts at least as long.
func (t *Tree[K, V]) CountBatch(lo, hi []K, counts []int) {
	t.c.CountBatch(t.keys(lo), t.keys(hi), counts)
}

// RangeBatch answers many ranges at once, as Frozen.RangeBatch does. Each range
// is read as Range reads it; a GPU reads all of them at one moment.
func (t *Tree[K, V]) RangeBatch(lo, hi []K, limit int) *Ranges[K, V] {
	r := new(Ranges[K, V])
	r.Offsets = t.c.RangeBatch(t.keys(lo), t.keys(hi), limit, func(n int) (order.Keys, index.Column) {
		r.Keys, r.Vals = make([]K, n), make([]V, n)
		return t.keys(r.Keys), index.ColumnOf(r.Vals)
	})
	return r
}

// PrefixCount returns the number of entries whose key starts with p. It is exact
// if no writer runs meanwhile. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) PrefixCount(p K) int { return t.c.PrefixCount(t.probe(p)) }

// Save writes the tree as it is at this moment to a file, which Open and
// OpenTree take, while writers go on. It makes a compact copy first. As with
// Frozen.Save the file appears whole or not at all.
func (t *Tree[K, V]) Save(path string) error { return t.c.Save(path) }

// WriteTo writes the tree as it is at this moment to w, the same bytes that Save
// puts into a file.
func (t *Tree[K, V]) WriteTo(w io.Writer) (int64, error) { return t.c.WriteTo(w) }

// Stats describes the tree.
func (t *Tree[K, V]) Stats() Stats { return stats(t.c.Stats()) }
