package index

import (
	"sort"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Ranges is where the entries of many ranges are: those of range i begin with
// entry First[i] and are entries Offsets[i] to Offsets[i+1] of all that were
// found.
type Ranges struct {
	First   *[]int // from a pool: Done gives it back
	Offsets []int
	Total   int
}

// Ranges finds many ranges: range i has the entries with lo[i] <= key <= hi[i],
// the first limit of them where limit is above 0.
func (ix *Index) Ranges(lo, hi order.Keys, limit int) Ranges {
	r := Ranges{First: ix.ranks(lo.Len()), Offsets: make([]int, lo.Len()+1)}
	ix.Engine.Rank(lo, *r.First)
	ix.Engine.RankAfter(hi, r.Offsets[1:])
	r.Total = accumulate(*r.First, r.Offsets, limit, ix.workers)
	return r
}

// ranks returns room for the ranks of a batch, from a pool.
func (ix *Index) ranks(n int) *[]int {
	s := par.Get(ix.scratch)
	if cap(*s) < n {
		*s = make([]int, n)
	}
	*s = (*s)[:n]
	return s
}

// Done gives the memory that Ranges has taken from a pool back.
func (ix *Index) Done(r Ranges) { par.Put(ix.scratch, r.First) }

// CountBatch sets counts[i] to the number of entries with lo[i] <= key <=
// hi[i].
func (ix *Index) CountBatch(lo, hi order.Keys, counts []int) {
	first := ix.ranks(lo.Len())
	ix.Engine.Rank(lo, *first)
	ix.Engine.RankAfter(hi, counts)
	for i, from := range *first {
		counts[i] = max(0, counts[i]-from)
	}
	par.Put(ix.scratch, first)
}

// CopyRanges sets keys and vals to the entries of all ranges.
func (ix *Index) CopyRanges(r Ranges, keys order.Keys, vals Column) {
	first := *r.First
	if ix.holder != nil {
		ix.holder.CopyRuns(first, r.Offsets, keys, vals)
		return
	}
	eachRuns(ix.workers, len(first), func(from, to int) { ix.copyRuns(first, r.Offsets, from, to, keys, vals) })
}

// copyRuns copies runs [from, to) where values are not in the layout.
func (ix *Index) copyRuns(first, offsets []int, from, to int, keys order.Keys, vals Column) {
	ix.finder.copyKeyRuns(first, offsets, from, to, keys)
	for i := from; i < to; i++ {
		if lo, hi := offsets[i], offsets[i+1]; lo < hi {
			ix.values.copyOut(ix.values.Part(vals, lo, hi), first[i])
		}
	}
}

// accumulate turns the ranks where ranges begin, and where they end (in
// offsets, from 1 on), into the offsets of their entries, at most limit of each
// where that is above 0. It returns the number of all.
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

// copyPart copies entries [from, to) of a result of runs: do copies the entries
// from lo on to [from, to) of the result.
func copyPart(first, offsets []int, from, to int, do func(lo, from, to int)) {
	run := sort.SearchInts(offsets, from+1) - 1 // the last that begins at from or before
	for ; from < to; run++ {
		if end := min(offsets[run+1], to); end > from {
			do(first[run]+from-offsets[run], from, end)
			from = end
		}
	}
}

// runsAtOnce is the number of runs that a worker copies at a time, prefetchAhead
// how far ahead it prefetches.
const (
	runsAtOnce    = 1024
	prefetchAhead = 8
)

// eachRuns calls do for all of n runs, some at a time, on all workers.
func eachRuns(workers, n int, do func(from, to int)) {
	par.Run(workers, (n+runsAtOnce-1)/runsAtOnce, par.Func(func(p int) {
		do(p*runsAtOnce, min((p+1)*runsAtOnce, n))
	}))
}

// FirstTwice returns the first entry whose key another one before it has, and false if
// no key is there more than once.
func (ix *Index) FirstTwice() (i int, found bool) {
	const piece = 4096
	for lo := 0; lo+1 < ix.n; lo += piece - 1 { // the last key of a piece is the first of the next
		keys := MakeKeys(ix.key.Type, min(piece, ix.n-lo))
		ix.Engine.CopyKeys(lo, keys)
		for i := 1; i < keys.Len(); i++ {
			if ix.key.Compare(keys.Probe(i-1), keys.Probe(i)) == 0 {
				return lo + i, true
			}
		}
	}
	return 0, false
}
