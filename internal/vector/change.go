package vector

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Op is the operation of a change.
type Op uint8

const (
	Nothing  Op = iota
	Add         // A is added
	Multiply    // multiplied by A
	Clamp       // at least A, at most B, as Go's max and min have it
	Set         // A takes its place
)

// Change is a function of values. A and B are bits of values.
type Change struct {
	Op
	Type
	A, B uint64
}

// Value returns the changed value, by their bits.
func (c *Change) Value(v uint64) uint64 {
	c.run(unsafe.Pointer(&v), 1, 1, 8)
	return v
}

// Lines changes values that lie in the second halves of lines of 64 bytes, in
// places of width bytes each. A place of 8 bytes may hold a value of 4, with 0
// in the rest.
func (c *Change) Lines(at unsafe.Pointer, lines, width int) {
	c.run(unsafe.Add(at, simd.LineBytes/2), lines, simd.LineBytes/2/width, width)
}

// run changes per values in each of some lines.
func (c *Change) run(at unsafe.Pointer, lines, per, width int) {
	switch c.NumberKind {
	case simd.Int32:
		changeNumbers(c, at, lines, per, width, int32(c.A), int32(c.B))
	case simd.Uint32:
		changeNumbers(c, at, lines, per, width, uint32(c.A), uint32(c.B))
	case simd.Float32:
		changeNumbers(c, at, lines, per, width, math.Float32frombits(uint32(c.A)), math.Float32frombits(uint32(c.B)))
	case simd.Int64:
		changeNumbers(c, at, lines, per, width, int64(c.A), int64(c.B))
	case simd.Uint64:
		changeNumbers(c, at, lines, per, width, c.A, c.B)
	case simd.Float64:
		changeNumbers(c, at, lines, per, width, math.Float64frombits(c.A), math.Float64frombits(c.B))
	}
}

type number interface {
	int32 | uint32 | float32 | int64 | uint64 | float64
}

// changeNumbers changes lines of values of a type.
func changeNumbers[T number](c *Change, at unsafe.Pointer, lines, per, width int, a, b T) {
	apart := width > int(unsafe.Sizeof(a))
	for j := range lines {
		if line := unsafe.Add(at, j*simd.LineBytes); apart {
			changeApart(c.Op, unsafe.Slice((*uint64)(line), per), a, b)
		} else {
			changeLine(c.Op, unsafe.Slice((*T)(line), per), a, b)
		}
	}
}

// changeApart changes values of 4 bytes in places of 8, at most as many as a line
// has.
func changeApart[T number](op Op, places []uint64, a, b T) {
	var vals [simd.LineBytes / 2 / 8]T
	for i, p := range places {
		bits := uint32(p)
		vals[i] = *(*T)(unsafe.Pointer(&bits))
	}
	changeLine(op, vals[:len(places)], a, b)
	for i := range places {
		places[i] = uint64(*(*uint32)(unsafe.Pointer(&vals[i])))
	}
}

// changeLine changes the values of a line.
func changeLine[T number](op Op, vals []T, a, b T) {
	switch op {
	case Add:
		for i := range vals {
			vals[i] += a
		}
	case Multiply:
		for i := range vals {
			vals[i] *= a
		}
	case Clamp:
		for i := range vals {
			vals[i] = min(max(vals[i], a), b)
		}
	case Set:
		for i := range vals {
			vals[i] = a
		}
	}
}
