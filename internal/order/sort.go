package order

import (
	"fmt"
	"math/bits"
	"sort"
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
)

// Sort sorts codes, stably, and moves the payload along: a value's bits or a
// row number. It returns the sorted codes, which are either in codes or in
// codesTmp, and the payload likewise; the contents of the other two slices are
// undefined. With nil payload and payloadTmp it sorts codes alone. Sort panics
// if the slices differ in length.
//
// It is a radix sort in two stages. While a range is too large for a core's
// cache, all workers together split it by the highest bits in which its codes
// differ. A range that is small enough is sorted by one worker, in cache. Sort
// allocates memory for its tables and for each worker's scratch of at most
// soloMax pairs, SortNeed in all; it sorts up to soloMax pairs without
// allocating.
func Sort[C, P Code](codes, codesTmp []C, payload, payloadTmp []P, workers int) ([]C, []P) {
	return SortUntil(codes, codesTmp, payload, payloadTmp, workers, nil)
}

// SortUntil is Sort that gives up when stop, which is asked every few milliseconds on all
// workers, returns true; once it does, it must go on to. The contents of all slices are
// then undefined. A nil stop never does.
func SortUntil[C, P Code](codes, codesTmp []C, payload, payloadTmp []P, workers int, stop func() bool) ([]C, []P) {
	n := len(codes)
	if len(codesTmp) != n {
		panic(fmt.Sprintf("order: %d codes and room for %d", n, len(codesTmp)))
	}
	if payload == nil && payloadTmp == nil {
		nothing := make([]struct{}, n) // takes no memory, and no time to move
		sorted := sortPairs(pairs[C, struct{}]{codes, nothing}, pairs[C, struct{}]{codesTmp, nothing}, workers, stop)
		return sorted.codes, nil
	}
	if len(payload) != n || len(payloadTmp) != n {
		panic(fmt.Sprintf("order: %d codes, %d payloads and room for %d", n, len(payload), len(payloadTmp)))
	}
	sorted := sortPairs(pairs[C, P]{codes, payload}, pairs[C, P]{codesTmp, payloadTmp}, workers, stop)
	return sorted.codes, sorted.payload
}

// SortNeed returns the bytes that Sort allocates at most for n pairs of
// pairBytes each, but for a few thousandths of the pairs' own bytes: each
// worker's scratch, and the tables of a split.
func SortNeed(n, pairBytes, workers int) int64 {
	if n <= soloMax {
		return 0
	}
	workers = max(workers, 1)
	tables := (partsOf(n, workers) + 1) << splitWidth(n)
	return int64(min(workers*soloMax, n)*pairBytes + 8*tables)
}

// pairs is codes and their payloads, two columns of the same length. P is a
// Code, or struct{} if there is no payload.
type pairs[C Code, P any] struct {
	codes   []C
	payload []P
}

func (p pairs[C, P]) slice(lo, hi int) pairs[C, P] {
	return pairs[C, P]{p.codes[lo:hi], p.payload[lo:hi]}
}

func (p pairs[C, P]) copyFrom(q pairs[C, P]) {
	copy(p.codes, q.codes)
	copy(p.payload, q.payload)
}

// soloMax is the largest number of pairs that one worker sorts alone: with 16
// bytes per pair and as much scratch, half of a level-2 cache of 2 MiB. With
// twice as many pairs, BenchmarkSolo takes half as long again per pair.
const soloMax = 1 << 15

// sortPairs sorts a with the help of b and returns the one that holds the
// result.
func sortPairs[C Code, P any](a, b pairs[C, P], workers int, stop func() bool) pairs[C, P] {
	n := len(a.codes)
	workers = max(workers, 1)
	if n <= soloMax {
		sortSolo(a, a, b)
		return a
	}
	differing := differ(a.codes, workers)
	if differing == 0 {
		return a
	}
	// The first split moves everything to b, which is where the result must
	// be.
	s := &sorting[C, P]{sides: [2]pairs[C, P]{b, a}, workers: workers, stop: stop}
	s.split(bucket{lo: 0, hi: n, side: 1}, differing)
	s.finish()
	return b
}

// sorting is the state of one sort of more pairs than one worker takes.
type sorting[C Code, P any] struct {
	sides   [2]pairs[C, P] // the result must end up in sides[0]
	workers int
	todo    []bucket
	next    atomic.Int64
	stop    func() bool // nil never stops
	anySide bool        // the result may end up on either side
}

// stopped reports whether the sort is given up.
func (s *sorting[C, P]) stopped() bool { return s.stop != nil && s.stop() }

// bucket is a range of pairs that holds the pairs of the final result, in some
// order and on either side.
type bucket struct {
	lo, hi, side int
	even         bool // all codes are equal
}

func (b bucket) size() int { return b.hi - b.lo }

// split moves b to the other side, in buckets by the highest differing bits.
// Buckets too large for one worker are split further, unless all their codes
// are equal; the others go into todo. Each split settles at least one bit of
// the code, so it terminates, whatever the distribution.
func (s *sorting[C, P]) split(b bucket, differing C) {
	s.refine(b.lo, s.partition(b, differing), 1-b.side)
}

// refine deals with the buckets of a split: the first begins at lo, each has its
// end, and all are on one side.
func (s *sorting[C, P]) refine(lo int, ends []int, side int) {
	for _, hi := range ends {
		sub := bucket{lo: lo, hi: hi, side: side}
		lo = hi
		if s.stopped() {
			return
		}
		switch {
		case sub.lo == sub.hi:
		case sub.size() <= soloMax:
			s.todo = append(s.todo, sub)
		default:
			if d := differ(s.sides[sub.side].codes[sub.lo:sub.hi], s.workers); d != 0 {
				s.makeOther(side)
				s.split(sub, d)
			} else {
				s.deliver(sub)
			}
		}
	}
}

// makeOther makes the side that a split of the other needs, if there is none yet.
func (s *sorting[C, P]) makeOther(side int) {
	if to := &s.sides[1-side]; to.codes == nil {
		n := len(s.sides[side].codes)
		*to = pairs[C, P]{make([]C, n), make([]P, n)}
	}
}

// deliver moves b, whose codes are all equal, to the right side, where there is one.
func (s *sorting[C, P]) deliver(b bucket) {
	if s.anySide {
		b.even = true
		s.todo = append(s.todo, b)
		return
	}
	if b.side == 0 {
		return
	}
	to, from := s.sides[0].slice(b.lo, b.hi), s.sides[1].slice(b.lo, b.hi)
	par.Copy(to.codes, from.codes, s.workers)
	par.Copy(to.payload, from.payload, s.workers)
}

// finish sorts the buckets in todo, large ones first. Each worker has scratch of
// its own that stays in its cache: of the size of the first bucket that it takes,
// so that all of them together are no larger than the buckets. The other side
// would serve as well, but is cold: that costs a third more.
func (s *sorting[C, P]) finish() {
	sort.Slice(s.todo, func(i, j int) bool { return s.todo[i].size() > s.todo[j].size() })
	workers := min(s.workers, len(s.todo))
	par.Run(workers, workers, par.Func(func(int) {
		var scratch pairs[C, P]
		for {
			i := int(s.next.Add(1) - 1)
			if i >= len(s.todo) || s.stopped() {
				return
			}
			b := s.todo[i]
			if scratch.codes == nil {
				scratch = pairs[C, P]{make([]C, b.size()), make([]P, b.size())}
			}
			sortSolo(s.sides[0].slice(b.lo, b.hi), s.sides[b.side].slice(b.lo, b.hi), scratch)
		}
	}))
}

// differ returns the bits in which not all codes agree. codes must not be
// empty.
func differ[C Code](codes []C, workers int) C {
	parts := partsOf(len(codes), workers)
	found := make([]C, parts)
	par.Run(workers, parts, par.Func(func(i int) {
		lo, hi := partOf(len(codes), parts, i)
		found[i] = differSolo(codes[0], codes[lo:hi])
	}))
	var d C
	for _, f := range found {
		d |= f
	}
	return d
}

// differSolo returns the bits in which any of codes differs from first.
func differSolo[C Code](first C, codes []C) C {
	var d0, d1, d2, d3 C // a single chain of operations would wait for itself
	for ; len(codes) >= 4; codes = codes[4:] {
		d0 |= codes[0] ^ first
		d1 |= codes[1] ^ first
		d2 |= codes[2] ^ first
		d3 |= codes[3] ^ first
	}
	for _, c := range codes {
		d0 |= c ^ first
	}
	return d0 | d1 | d2 | d3
}

// partsOf returns the number of parts into which n pairs are cut: more than
// there are workers, so that one delayed worker does not delay all.
func partsOf(n, workers int) int {
	if workers <= 1 {
		return 1
	}
	return max(1, min(4*workers, n/(soloMax/4)))
}

// partOf returns the range of part i.
func partOf(n, parts, i int) (lo, hi int) {
	size := (n + parts - 1) / parts
	return min(i*size, n), min((i+1)*size, n)
}

// log2 returns the base-2 logarithm of n, rounded down.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
