package order

import (
	"math/bits"

	"github.com/pando-index/pando/internal/par"
)

// A split aims at buckets of 1<<bucketBits pairs and makes at most 1<<splitMax
// of them, and at least 1<<splitMin. From some 64 buckets on, their number
// hardly matters (BenchmarkMove): each new line of the target is then a cache
// miss. Gathering pairs in buffers of one line each, as sorts in C++ do, gains
// nothing, because Go has no store that bypasses the cache.
const (
	bucketBits = 13
	splitMax   = 11
	splitMin   = 3
)

// splitWidth returns the bits by which n pairs are split.
func splitWidth(n int) int { return min(max(log2(n)-bucketBits, splitMin), splitMax) }

// partition moves b to the other side, sorted by the highest bits in which its
// codes differ and stable within them, and returns the ends of the buckets.
func (s *sorting[C, P]) partition(b bucket, differing C) (ends []int) {
	from := s.sides[b.side].slice(b.lo, b.hi)
	return s.partitionFrom(source[C, P]{pairs: from}, b.lo, s.sides[1-b.side].slice(b.lo, b.hi), differing)
}

// partitionFrom is partition for pairs from anywhere, which go to to. The first
// bucket begins at start.
func (s *sorting[C, P]) partitionFrom(from source[C, P], start int, to pairs[C, P], differing C) (ends []int) {
	n := len(to.codes)
	width := splitWidth(n)
	p := &partition[C, P]{
		from:  from,
		to:    to,
		parts: partsOf(n, s.workers),
		shift: max(bits.Len64(uint64(differing))-width, 0),
		mask:  1<<width - 1,
	}
	p.next = make([]int, p.parts<<width)
	par.Run(s.workers, p.parts, s.unlessStopped(p.count))
	ends = p.place(1<<width, start)
	par.Run(s.workers, p.parts, s.unlessStopped(p.move))
	return ends
}

// unlessStopped is the work on parts that are left out once the sort is given up.
func (s *sorting[C, P]) unlessStopped(do func(part int)) par.Func {
	return func(part int) {
		if !s.stopped() {
			do(part)
		}
	}
}

// partition is the state of one split. Each part of from is counted and then
// moved by one worker. A bucket first holds the pairs of part 0, then those of
// part 1, and so on: that keeps the sort stable.
type partition[C Code, P any] struct {
	from  source[C, P]
	to    pairs[C, P]
	parts int
	shift int
	mask  uint64
	next  []int // for each part and bucket: first the count, then where the next one goes
}

// each calls do with the pairs of part i, some at a time, and what there is for its
// buckets.
func (p *partition[C, P]) each(i int, do func(from pairs[C, P], next []int)) {
	lo, hi := partOf(len(p.to.codes), p.parts, i)
	buckets := len(p.next) / p.parts
	next := p.next[i*buckets : (i+1)*buckets]
	p.from.each(lo, hi, func(from pairs[C, P]) { do(from, next) })
}

func (p *partition[C, P]) count(i int) {
	shift, mask := p.shift, p.mask
	p.each(i, func(from pairs[C, P], next []int) {
		for _, c := range from.codes {
			next[uint64(c)>>(shift&63)&mask]++
		}
	})
}

// place turns counts into positions and returns the ends of the buckets, the
// first of which begins at start.
func (p *partition[C, P]) place(buckets, start int) []int {
	ends := make([]int, buckets)
	place := 0
	for b := range ends {
		for i := b; i < len(p.next); i += buckets {
			p.next[i], place = place, place+p.next[i]
		}
		ends[b] = start + place
	}
	return ends
}

func (p *partition[C, P]) move(i int) {
	p.each(i, func(from pairs[C, P], next []int) { moveSolo(p.to, from, next, p.shift, p.mask) })
}

// moveSolo moves pairs to the next places of their buckets.
func moveSolo[C Code, P any](to, from pairs[C, P], next []int, shift int, mask uint64) {
	payload, codes, toPayload := from.payload, to.codes, to.payload
	for i, c := range from.codes {
		b := uint64(c) >> (shift & 63) & mask
		at := next[b]
		next[b] = at + 1
		codes[at] = c
		toPayload[at] = payload[i]
	}
}
