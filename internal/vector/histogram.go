package vector

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Histogram counts the values of a source between bounds, which are bits of
// values that ascend: counts[i], of one more than there are bounds, becomes the
// number of values that are at least as great as i of the bounds. A NaN is so to
// none.
func Histogram(src Source, t Type, bounds []uint64, counts []int, workers int) {
	if d, ok := src.(Counter); ok && d.Histogram(t, bounds, counts) {
		return
	}
	var in func() sink
	switch {
	case len(bounds) <= compareAll:
		in = func() sink { return &bins{kind: t.NumberKind, bounds: bounds, counts: make([]int, len(bounds)+1)} }
	case t.Bytes() == 4:
		r := newRanked[uint32](t.NumberKind, bounds)
		defer r.tree.Release()
		in = r.sink
	default:
		r := newRanked[uint64](t.NumberKind, bounds)
		defer r.tree.Release()
		in = r.sink
	}
	parts := make([]sink, src.Pieces())
	each(src, t, workers, func(p int) sink {
		parts[p] = in()
		return parts[p]
	})
	clear(counts)
	for _, p := range parts {
		for j, n := range p.(interface{ counted() []int }).counted() {
			counts[j] += n
		}
	}
}

// compareAll is the number of bounds up to which a block is compared with each of
// them rather than each value searched for among them: experiment histogram.
const compareAll = 24

// bins counts the values of a piece by comparing them with each bound.
type bins struct {
	kind   simd.NumberKind
	bounds []uint64
	counts []int
	mask   Mask
}

func (b *bins) counted() []int { return b.counts }

func (b *bins) block(at unsafe.Pointer, n int) {
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

// ranked is bounds as a tree: the bin of a value is its rank among them. A rank
// counts the bounds below a key, and a bin has those not above: so the tree has
// the code before that of each bound. Bounds that no number is below have none,
// and are counted by base.
type ranked[C simd.Code] struct {
	kind simd.NumberKind
	tree layout.Tree[C]
	base int
	n    int
}

func newRanked[C simd.Code](k simd.NumberKind, bounds []uint64) *ranked[C] {
	r := &ranked[C]{kind: k, n: len(bounds)}
	codes := make([]C, 0, len(bounds))
	for _, b := range bounds {
		if c := codeOf[C](k, b); c > 0 {
			codes = append(codes, c-1)
		} else {
			r.base++
		}
	}
	tree, err := implicit.Layout[C]{}.Build(layout.Source[C]{Len: len(codes), Codes: codes}, layout.Config{Workers: 1, Pages: arena.Small})
	if err != nil {
		panic(fmt.Sprintf("vector: %d bounds: %v", len(bounds), err))
	}
	r.tree = tree
	return r
}

func (r *ranked[C]) sink() sink { return &rankedBins[C]{ranked: r, counts: make([]int, r.n+1)} }

// codeOf returns a number as an unsigned integer in the same order: that of -0 is
// that of 0, and that of NaN is 0, below all others.
func codeOf[C simd.Code](k simd.NumberKind, v uint64) C {
	switch k {
	case simd.Float32:
		f := math.Float32frombits(uint32(v)) + 0
		if f != f {
			return 0
		}
		return C(uint32(simd.Ordered(k, uint64(math.Float32bits(f)))) ^ 1<<31)
	case simd.Float64:
		f := math.Float64frombits(v) + 0
		if f != f {
			return 0
		}
		return C(uint64(simd.Ordered(k, math.Float64bits(f))) ^ 1<<63)
	case simd.Int32:
		return C(uint32(v) ^ 1<<31)
	case simd.Int64:
		return C(v ^ 1<<63)
	}
	return C(v)
}

// rankedBins counts the values of a piece by their ranks.
type rankedBins[C simd.Code] struct {
	*ranked[C]
	counts []int
	codes  [Block]C
	ranks  [Block]int
}

func (b *rankedBins[C]) counted() []int { return b.counts }

func (b *rankedBins[C]) block(at unsafe.Pointer, n int) {
	for i, v := range unsafe.Slice((*C)(at), n) {
		b.codes[i] = codeOf[C](b.kind, uint64(v))
	}
	b.tree.Rank(b.codes[:n], b.ranks[:n])
	for i, r := range b.ranks[:n] {
		if b.kind.IsFloat() && b.codes[i] == 0 { // a NaN, which is not even at the base
			b.counts[0]++
			continue
		}
		b.counts[b.base+r]++
	}
}
