package pando

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando/internal/index"
)

// Number is the type of values that Aggregate, Histogram, Select and Transform
// work on.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Summary is the result of Aggregate. Without entries all of it is zero.
type Summary[V Number] struct {
	Count int
	// Sum is cut to V: integers wrap, as Go's do.
	Sum V
	// Min and Max are those of Go's min and max: NaN if any value is, and -0 is
	// below 0.
	Min, Max V
	// Mean is Sum/Count, but does not suffer from a Sum that has wrapped, or was
	// rounded to a float32.
	Mean float64
}

// Aggregate sums up the values of the entries with lo <= key <= hi. There are
// none if lo is above hi.
//
// The sum of integers wraps. The sum of floats is taken in float64, and in an
// order that depends on the entries of the range alone: every layout, machine,
// device and number of workers returns the same bits (package internal/vector has
// the order). Values of 4 or 8 bytes are read at the speed of memory, by all
// cores, or where there are many by a GPU that has them; those of 1 or 2 bytes in a
// Tree as fast as a loop over Range does.
//
// Over a Tree each value is the one at some time during the call, and an entry
// that is there all the time is counted once, even if others change it; take a
// Snapshot to sum up one moment.
func Aggregate[K Key, V Number](ix Index[K, V], lo, hi K) Summary[V] {
	if many, ok := ix.(computer[K, V]); ok {
		if sum, ok := many.summarize(lo, hi); ok {
			return summaryOf[V](&sum)
		}
	}
	sum := oneByOne(ix, lo, hi).Sum(numberOf[V]())
	return summaryOf[V](&sum)
}

// AggregateBatch sets out[i] to Aggregate(ix, lo[i], hi[i]), for many ranges at
// once. lo and hi must be of the same length, out at least as long.
func AggregateBatch[K Key, V Number](ix Index[K, V], lo, hi []K, out []Summary[V]) {
	index.MustPair("AggregateBatch", len(lo), len(hi))
	index.MustHold("AggregateBatch", "out", len(out), len(lo))
	if many, ok := ix.(computer[K, V]); ok {
		sums := make([]index.Summary, len(lo))
		if many.summarizeBatch(lo, hi, sums) {
			for i := range sums {
				out[i] = summaryOf[V](&sums[i])
			}
			return
		}
	}
	for i := range lo {
		out[i] = Aggregate(ix, lo[i], hi[i])
	}
}

// Histogram counts the values of the entries with lo <= key <= hi: counts[0] of
// those below bounds[0], counts[i] of those from bounds[i-1] on and below
// bounds[i], and the last of counts of those from the last bound on. NaNs are
// counted as below all bounds. counts must be at least one longer than bounds, which
// must ascend and not be NaN; further elements of counts are left alone. Reads are
// those of Aggregate.
func Histogram[K Key, V Number](ix Index[K, V], lo, hi K, bounds []V, counts []int) {
	if len(counts) <= len(bounds) {
		panic(fmt.Sprintf("pando: Histogram: %d bounds are for %d counts, and there are %d", len(bounds), len(bounds)+1, len(counts)))
	}
	raw := make([]uint64, len(bounds))
	t := numberOf[V]()
	for i, b := range bounds {
		if b != b || i > 0 && b < bounds[i-1] {
			panic(fmt.Sprintf("pando: Histogram: bounds must ascend, and bound %d is %v", i, b))
		}
		raw[i] = index.BitsOf(t, b)
	}
	counts = counts[:len(bounds)+1]
	if many, ok := ix.(computer[K, V]); !ok || !many.histogram(lo, hi, raw, counts) {
		oneByOne(ix, lo, hi).Count(t, raw, counts)
	}
}

// Condition is a test of values for Select: Below, Above, Between or Equal. No
// value satisfies the zero Condition, and NaN satisfies none.
type Condition[V Number] struct {
	test index.Test
	a, b V
}

// Below is the condition that a value is below v.
func Below[V Number](v V) Condition[V] { return Condition[V]{test: index.Below, a: v} }

// Above is the condition that a value is above v.
func Above[V Number](v V) Condition[V] { return Condition[V]{test: index.Above, a: v} }

// Between is the condition that a value is at least lo and at most hi. None is if
// lo is above hi.
func Between[V Number](lo, hi V) Condition[V] { return Condition[V]{test: index.Between, a: lo, b: hi} }

// Equal is the condition that a value equals v, as == has it.
func Equal[V Number](v V) Condition[V] { return Between(v, v) }

// raw returns the condition without its type.
func (c Condition[V]) raw(t index.Number) index.Condition {
	test := c.test
	if test == index.Between && !(c.a <= c.b) {
		test = index.Never
	}
	return test.Condition(t, index.BitsOf(t, c.a), index.BitsOf(t, c.b))
}

// holds reports whether a value satisfies the condition.
func (c Condition[V]) holds(v V) bool {
	switch c.test {
	case index.Below:
		return v < c.a
	case index.Above:
		return v > c.a
	case index.Between:
		return v >= c.a && v <= c.b
	}
	return false
}

// Select returns the entries with lo <= key <= hi whose value satisfies a
// condition, in key order, as one range. Reads are those of Aggregate.
func Select[K Key, V Number](ix Index[K, V], lo, hi K, cond Condition[V]) *Ranges[K, V] {
	if s, ok := ix.(computer[K, V]); ok {
		if r, ok := s.selectValues(lo, hi, cond.raw(numberOf[V]())); ok {
			return r
		}
	}
	r := &Ranges[K, V]{}
	for k, v := range ix.Range(lo, hi) {
		if cond.holds(v) {
			r.Keys, r.Vals = append(r.Keys, k), append(r.Vals, v)
		}
	}
	r.Offsets = []int{0, len(r.Keys)}
	return r
}

// Change is a change of values for Transform: Add, Multiply, Clamp or SetTo.
// The zero Change leaves them as they are.
type Change[V Number] struct {
	kind index.ChangeKind
	a, b V
}

// Add adds v. Integers wrap.
func Add[V Number](v V) Change[V] { return Change[V]{kind: index.Add, a: v} }

// Multiply multiplies by v. Integers wrap.
func Multiply[V Number](v V) Change[V] { return Change[V]{kind: index.Multiply, a: v} }

// Clamp makes values below lo that, and values above hi that, as min(max(v, lo),
// hi) does: NaN stays. It panics if lo is above hi, or either is NaN.
func Clamp[V Number](lo, hi V) Change[V] {
	if !(lo <= hi) {
		panic(fmt.Sprintf("pando: Clamp: nothing is between %v and %v", lo, hi))
	}
	return Change[V]{kind: index.Clamp, a: lo, b: hi}
}

// SetTo makes all values v.
func SetTo[V Number](v V) Change[V] { return Change[V]{kind: index.SetTo, a: v} }

// of returns the changed value.
func (c Change[V]) of(v V) V {
	switch c.kind {
	case index.Add:
		return v + c.a
	case index.Multiply:
		return v * c.a
	case index.Clamp:
		return min(max(v, c.a), c.b)
	case index.SetTo:
		return c.a
	}
	return v
}

// Transform changes the values of the entries with lo <= key <= hi, many times
// faster than an Update of each, and returns how many there were.
//
// Each value is changed once, from the value that it has at that moment: no concurrent
// change of it is lost. They may see some values changed and others not yet, though the
// few hundred of a leaf change together; an entry that they set while Transform runs may
// or may not be changed. Snapshots taken before keep their values, for which memory is
// needed as for any update: if the memory limit does not allow it, Transform returns
// ErrMemoryLimit, and nothing has been changed. Values of 1 or 2 bytes, and those of
// strings, are changed one by one, and those of a DeviceOnly tree some thousands at a
// time; then an error may come when some have been.
func Transform[K Key, V Number](t *Tree[K, V], lo, hi K, f Change[V]) (changed int, err error) {
	n := numberOf[V]()
	c := index.Change{Op: f.kind, Type: n, A: index.BitsOf(n, f.a), B: index.BitsOf(n, f.b)}
	return t.c.Transform(t.probe(lo), t.probe(hi), &c, func(old index.Value) index.Value {
		return t.bare(f.of(index.ValueAs[V](old)))
	})
}

// numberOf returns how values of type V lie and are computed with.
func numberOf[V Number]() index.Number { return index.NumberType(reflect.TypeFor[V]()) }

// summaryOf returns a summary with its type.
func summaryOf[V Number](s *index.Summary) Summary[V] {
	out := Summary[V]{Count: s.Count, Mean: s.Mean}
	out.Sum, out.Min, out.Max = index.TotalsOf[V](numberOf[V](), s)
	return out
}
