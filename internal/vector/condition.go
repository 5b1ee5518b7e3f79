package vector

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Condition is that a value lies between two, whose bits these are, or is either.
type Condition struct {
	Lo, Hi uint64
	Never  bool // no value satisfies it
}

// Below returns the condition that a value is below another.
func Below(k simd.NumberKind, v uint64) Condition {
	if v == 0 { // -0 is not below 0
		v = zero(k, true)
	}
	if simd.Ordered(k, v) == least(k) {
		return Condition{Never: true}
	}
	return between(k, least(k), simd.Ordered(k, v)-1, v)
}

// Above returns the condition that a value is above another.
func Above(k simd.NumberKind, v uint64) Condition {
	if v == zero(k, true) { // 0 is not above -0
		v = 0
	}
	if simd.Ordered(k, v) == greatest(k) {
		return Condition{Never: true}
	}
	return between(k, simd.Ordered(k, v)+1, greatest(k), v)
}

// Between returns the condition that a value is at least lo and at most hi.
func Between(k simd.NumberKind, lo, hi uint64) Condition {
	if isNaN(k, hi) {
		return Condition{Never: true}
	}
	return between(k, simd.Ordered(k, lo), simd.Ordered(k, hi), lo)
}

// between returns the condition for values in an order, where v is a number.
func between(k simd.NumberKind, lo, hi int64, v uint64) Condition {
	if isNaN(k, v) {
		return Condition{Never: true}
	}
	return Condition{Lo: simd.Unordered(k, lo), Hi: simd.Unordered(k, hi)}
}

// zero returns the bits of 0, or of -0, which only floats have.
func zero(k simd.NumberKind, negative bool) uint64 {
	switch {
	case !negative:
	case k == simd.Float32:
		return 1 << 31
	case k == simd.Float64:
		return 1 << 63
	}
	return 0
}

// least and greatest return the ends of the numbers of a kind, in their order.
func least(k simd.NumberKind) int64 {
	switch {
	case k.IsFloat():
		return infinity(k, -1)
	case k.Bytes() == 4:
		return math.MinInt32
	}
	return math.MinInt64
}

func greatest(k simd.NumberKind) int64 {
	switch {
	case k.IsFloat():
		return infinity(k, 1)
	case k.Bytes() == 4:
		return math.MaxInt32
	}
	return math.MaxInt64
}

func isNaN(k simd.NumberKind, v uint64) bool {
	code := simd.Ordered(k, v)
	return k.IsFloat() && (code < infinity(k, -1) || code > infinity(k, 1))
}

// Mask is which of the values of a block satisfy a condition: bit i%32 of word
// i/32.
type Mask [Block / simd.Lanes]uint32

// Match sets m for n values, at most Block.
func (c Condition) Match(k simd.NumberKind, at unsafe.Pointer, n int, m *Mask) {
	if c.Never {
		*m = Mask{}
		return
	}
	simd.Within(k, at, n, c.Lo, c.Hi, m[:])
}

// Match looks which values of a source satisfy a condition: it returns a mask for
// each block, and the number of those before each piece and of all.
func Match(src Source, t Type, c Condition, workers int) (masks []Mask, before []int) {
	pieces := src.Pieces()
	masks, before = make([]Mask, pieces*(Piece/Block)), make([]int, pieces+1)
	each(src, t, workers, func(p int) sink {
		return &matching{kind: t.NumberKind, cond: c, masks: masks[p*(Piece/Block):], count: &before[p+1]}
	})
	for p := range pieces {
		before[p+1] += before[p]
	}
	return masks, before
}

// matching matches the values of a piece.
type matching struct {
	kind  simd.NumberKind
	cond  Condition
	masks []Mask // of the blocks to come
	count *int
}

func (m *matching) block(at unsafe.Pointer, n int) {
	m.cond.Match(m.kind, at, n, &m.masks[0])
	*m.count += m.masks[0].Count(n)
	m.masks = m.masks[1:]
}
