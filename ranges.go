package pando

import (
	"fmt"
	"sort"
	"sync"

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
	first := scratch.take(len(lo))
	defer scratch.give(first)
	r := &Ranges[K, V]{Offsets: make([]int, len(lo)+1)}
	ix.RankBatch(lo, *first)
	ix.AfterBatch(hi, r.Offsets[1:])
	f.done(ix)
	total := accumulate(*first, r.Offsets, limit, ix.stats.Workers)
	r.Keys, r.Vals = make([]K, total), make([]V, total)
	if !ix.CopyRuns(*first, r.Offsets, r.Keys, r.Vals, func(from, to int) { r.fillPart(ix, *first, from, to) }) {
		r.fill(ix, *first)
	}
	f.done(ix)
	return r
}

// accumulate turns the ranks where ranges begin, and where they end (in
// offsets, from 1 on), into the offsets of their entries, at most limit of each
// where that is above 0. It gives the number of all.
func accumulate(first, offsets []int, limit, workers int) (total int) {
	const piece = 32 << 10
	pieces := (len(first) + piece - 1) / piece
	sums := make([]int, pieces+1)
	span := func(p int) (starts, ends []int) {
		lo, hi := p*piece, min((p+1)*piece, len(first))
		return first[lo:hi], offsets[lo+1 : hi+1]
	}
	par.Run(workers, pieces, par.Func(func(p int) {
		starts, ends := span(p)
		for i, end := range ends {
			n := max(0, end-starts[i])
			if limit > 0 {
				n = min(n, limit)
			}
			ends[i] = n
			sums[p+1] += n
		}
	}))
	for p := range pieces {
		sums[p+1] += sums[p]
	}
	par.Run(workers, pieces, par.Func(func(p int) {
		at := sums[p]
		_, ends := span(p)
		for i, n := range ends {
			at += n
			ends[i] = at
		}
	}))
	return sums[pieces]
}

// ranks is room for the ranks of a batch, kept for the next.
type ranks struct{ sync.Pool } // *[]int

var scratch ranks

func (r *ranks) take(n int) *[]int {
	s, _ := r.Get().(*[]int)
	if s == nil || cap(*s) < n {
		s = new([]int)
		*s = make([]int, n)
	}
	*s = (*s)[:n]
	return s
}

func (r *ranks) give(s *[]int) { r.Put(s) }

// CountBatch sets counts[i] to Count(lo[i], hi[i]). lo and hi must be of the
// same length, counts at least as long.
func (f *Frozen[K, V]) CountBatch(lo, hi []K, counts []int) {
	ix := f.open()
	if len(lo) != len(hi) {
		panic(fmt.Sprintf("pando: CountBatch: %d lower and %d upper bounds", len(lo), len(hi)))
	}
	mustHold("CountBatch", "counts", len(counts), len(lo))
	first := scratch.take(len(lo))
	defer scratch.give(first)
	ix.RankBatch(lo, *first)
	ix.AfterBatch(hi, counts[:len(lo)])
	for i, from := range *first {
		counts[i] = max(0, counts[i]-from)
	}
	f.done(ix)
}

// fillPart copies entries [from, to) of the result.
func (r *Ranges[K, V]) fillPart(ix *index[K, V], first []int, from, to int) {
	run := sort.SearchInts(r.Offsets, from+1) - 1 // the last that begins at from or before
	for ; from < to; run++ {
		if end := min(r.Offsets[run+1], to); end > from {
			ix.CopyOut(first[run]+from-r.Offsets[run], r.Keys[from:end], r.Vals[from:end])
			from = end
		}
	}
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
