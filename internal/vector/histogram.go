package vector

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Histogram counts the values of a source between bounds, which are bits of
// values that ascend: counts[i], of one more than there are bounds, becomes the
// number of values that are at least as great as i of the bounds. A NaN is so to
// none.
func Histogram(src Source, t Type, bounds []uint64, counts []int, workers int) {
	parts := make([]bins, src.Pieces())
	each(src, t, workers, func(p int) sink {
		parts[p] = bins{kind: t.Kind, bounds: bounds, counts: make([]int, len(bounds)+1)}
		return &parts[p]
	})
	clear(counts)
	for i := range parts {
		for j, n := range parts[i].counts {
			counts[j] += n
		}
	}
}

// bins counts the values of a piece.
type bins struct {
	kind   simd.Kind
	bounds []uint64
	counts []int
	mask   Mask
}

// compareAll is the number of bounds up to which a block is compared with each of
// them rather than searched for each value: experiment histogram.
const compareAll = 48

func (b *bins) block(at unsafe.Pointer, n int) {
	if len(b.bounds) > compareAll {
		b.search(at, n)
		return
	}
	all := Condition{Hi: simd.Unordered(b.kind, greatest(b.kind))}
	above := n
	for i, bound := range b.bounds {
		all.Lo = bound
		all.Match(b.kind, at, n, &b.mask)
		k := b.mask.Count(n)
		b.counts[i] += above - k
		above = k
	}
	b.counts[len(b.bounds)] += above
}

// search counts by a binary search for each value.
func (b *bins) search(at unsafe.Pointer, n int) {
	switch b.kind {
	case simd.Int32:
		search(b, unsafe.Slice((*int32)(at), n), func(v uint64) int32 { return int32(v) })
	case simd.Uint32:
		search(b, unsafe.Slice((*uint32)(at), n), func(v uint64) uint32 { return uint32(v) })
	case simd.Float32:
		search(b, unsafe.Slice((*float32)(at), n), func(v uint64) float32 { return math.Float32frombits(uint32(v)) })
	case simd.Int64:
		search(b, unsafe.Slice((*int64)(at), n), func(v uint64) int64 { return int64(v) })
	case simd.Uint64:
		search(b, unsafe.Slice((*uint64)(at), n), func(v uint64) uint64 { return v })
	case simd.Float64:
		search(b, unsafe.Slice((*float64)(at), n), math.Float64frombits)
	}
}

// search counts values between bounds that of makes of their bits.
func search[T int32 | uint32 | float32 | int64 | uint64 | float64](b *bins, vals []T, of func(uint64) T) {
	bounds := make([]T, len(b.bounds))
	for i, v := range b.bounds {
		bounds[i] = of(v)
	}
	for _, v := range vals {
		first, n := 0, len(bounds) // the bin is at most n behind first
		for n > 0 {
			half := (n + 1) / 2
			if bounds[first+half-1] <= v {
				first += half
				n -= half
			} else {
				n = half - 1
			}
		}
		b.counts[first]++
	}
}
