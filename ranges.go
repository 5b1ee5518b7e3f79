package pando

import "github.com/pando-index/pando/internal/index"

// Ranges is the result of RangeBatch: the entries of range i are
// Keys[Offsets[i]:Offsets[i+1]] and Vals[Offsets[i]:Offsets[i+1]].
type Ranges[K Key, V any] struct {
	Keys    []K
	Vals    []V
	Offsets []int // one more than there are ranges
}

// Len returns the number of ranges.
func (r *Ranges[K, V]) Len() int { return max(0, len(r.Offsets)-1) }

// At returns the entries of range i, as parts of Keys and Vals.
func (r *Ranges[K, V]) At(i int) ([]K, []V) {
	lo, hi := r.Offsets[i], r.Offsets[i+1]
	return r.Keys[lo:hi:hi], r.Vals[lo:hi:hi]
}

// RangeBatch answers many ranges at once: range i has the entries with
// lo[i] <= key <= hi[i] in key order, the first limit of them where limit is
// above 0. The results take exactly the memory of the entries found. lo and hi
// must be of the same length.
func (f *Frozen[K, V]) RangeBatch(lo, hi []K, limit int) *Ranges[K, V] {
	ix, found := f.c.RangeBatch(f.keys(lo), f.keys(hi), limit)
	r := &Ranges[K, V]{Keys: make([]K, found.Total), Vals: make([]V, found.Total), Offsets: found.Offsets}
	f.c.CopyRanges(ix, found, f.keys(r.Keys), index.ColumnOf(r.Vals))
	return r
}

// CountBatch sets counts[i] to Count(lo[i], hi[i]). lo and hi must be of the
// same length, counts at least as long.
func (f *Frozen[K, V]) CountBatch(lo, hi []K, counts []int) {
	f.c.CountBatch(f.keys(lo), f.keys(hi), counts)
}
