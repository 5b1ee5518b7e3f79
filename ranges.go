package pando

import (
	"fmt"

	"github.com/pando-index/pando/internal/par"
)

// Ranges holds what RangeBatch found: the entries of range i are
// Keys[Offsets[i]:Offsets[i+1]] and Vals[Offsets[i]:Offsets[i+1]].
type Ranges[K Key, V any] struct {
	Keys    []K
	Vals    []V
	Offsets []int // one more than there are ranges
}

// Len gives the number of ranges.
func (r *Ranges[K, V]) Len() int { return max(0, len(r.Offsets)-1) }

// At gives the entries of range i, as parts of Keys and Vals.
func (r *Ranges[K, V]) At(i int) ([]K, []V) {
	lo, hi := r.Offsets[i], r.Offsets[i+1]
	return r.Keys[lo:hi:hi], r.Vals[lo:hi:hi]
}

// RangeBatch answers many ranges at once: range i has the entries with
// lo[i] <= key <= hi[i] in key order, the first limit of them where limit is
// above 0. The results are exactly as large as what was found. lo and hi must
// be of the same length.
func (f *Frozen[K, V]) RangeBatch(lo, hi []K, limit int) *Ranges[K, V] {
	ix := f.open()
	if len(lo) != len(hi) {
		panic(fmt.Sprintf("pando: RangeBatch: %d lower and %d upper bounds", len(lo), len(hi)))
	}
	first, ends := make([]int, len(lo)), make([]int, len(lo))
	ix.RankBatch(lo, first)
	ix.AfterBatch(hi, ends)
	f.done(ix)
	r := &Ranges[K, V]{Offsets: make([]int, len(lo)+1)}
	for i := range lo {
		n := max(0, ends[i]-first[i])
		if limit > 0 {
			n = min(n, limit)
		}
		r.Offsets[i+1] = r.Offsets[i] + n
	}
	total := r.Offsets[len(lo)]
	r.Keys, r.Vals = make([]K, total), make([]V, total)
	r.fill(ix, first)
	f.done(ix)
	return r
}

// fillAtOnce is the number of ranges that a worker copies at a time,
// fetchAhead how far it asks ahead for what it will copy.
const (
	fillAtOnce = 1024
	fetchAhead = 8
)

// fill copies the entries of all ranges, which start at the given ranks.
func (r *Ranges[K, V]) fill(ix *index[K, V], first []int) {
	pieces := (len(first) + fillAtOnce - 1) / fillAtOnce
	par.Run(ix.stats.Workers, pieces, par.Func(func(p int) {
		end := min((p+1)*fillAtOnce, len(first))
		for i := p * fillAtOnce; i < end; i++ {
			if j := i + fetchAhead; j < end {
				ix.Fetch(first[j], r.Offsets[j+1]-r.Offsets[j])
			}
			if keys, vals := r.At(i); len(keys) > 0 {
				ix.CopyOut(first[i], keys, vals)
			}
		}
	}))
}
