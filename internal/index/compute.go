package index

import (
	"unsafe"

	"github.com/pando-index/pando/internal/vector"
)

// Vector operations as the face has them: it knows the types of values, and the floors
// below their bits.
type (
	// Number is how values of a type lie, and are computed with.
	Number = vector.Type
	// Summary is values summed up.
	Summary = vector.Summary
	// Condition is a test of values, for Select.
	Condition = vector.Condition
	// Change is a change of values, for Transform.
	Change = vector.Change
	// ChangeKind says what a Change does.
	ChangeKind = vector.Op
)

const (
	Add      = vector.Add
	Multiply = vector.Multiply
	Clamp    = vector.Clamp
	SetTo    = vector.Set
)

// Test is a kind of condition.
type Test uint8

const (
	Never Test = iota
	Below
	Above
	Between
)

// Condition returns the test of numbers against a, or between a and b.
func (t Test) Condition(n Number, a, b uint64) Condition {
	switch t {
	case Below:
		return vector.Below(n.Kind, a)
	case Above:
		return vector.Above(n.Kind, a)
	case Between:
		return vector.Between(n.Kind, a, b)
	}
	return Condition{Never: true}
}

// OneByOne is values that are read in order, for an index whose values cannot be read many
// at a time. It calls take with some of them at a time, which lie at an address; AtOnce is
// how many.
type OneByOne func(take func(at unsafe.Pointer, n int))

// AtOnce is how many values OneByOne takes at a time.
const AtOnce = vector.Block

// Pieces implements vector.Source.
func (OneByOne) Pieces() int { return 1 }

// Read implements vector.Source.
func (each OneByOne) Read(_ int, r *vector.Reader) { each(r.Take) }

// Sum sums up all values.
func (each OneByOne) Sum(n Number) Summary { return vector.Summarize(each, n, 1) }

// Count counts the values between bounds, given by their bits.
func (each OneByOne) Count(n Number, bounds []uint64, counts []int) {
	vector.Histogram(each, n, bounds, counts, 1)
}
