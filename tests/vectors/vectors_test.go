// Package vectors asks the same vector operations of every index of the same
// entries: each layout, trees and their snapshots, on every path of the CPU, by any
// number of workers. They must return what a plain loop does, sums of floats to
// the last bit.
package vectors

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/vector"
)

// numbers is how the tests get values of a type.
type numbers[V pando.Number] struct {
	odd  []V
	bits func(uint64) V
}

func (n numbers[V]) some(rng *rand.Rand) V {
	switch rng.IntN(4) {
	case 0:
		return n.odd[rng.IntN(len(n.odd))]
	case 1:
		return V(rng.IntN(100))
	}
	return n.bits(rng.Uint64())
}

func whole[V pando.Number]() numbers[V] {
	return numbers[V]{[]V{0, 1, V(big1 >> 1), V(big1), V(big1<<63 - 1 + big1>>1)}, func(u uint64) V { return V(u) }}
}

var big1 = uint64(1) << 63 // a variable: constants would have to fit

func floats64[V ~float64]() numbers[V] {
	return numbers[V]{[]V{0, V(math.Copysign(0, -1)), 1e300, 5e-324, 0.1}, func(u uint64) V { return V(unit(u)) }}
}

func floats32[V ~float32]() numbers[V] {
	return numbers[V]{[]V{0, V(math.Copysign(0, -1)), 3e38, -3e38, 1e-45, 0.1}, func(u uint64) V { return V(unit(u)) }}
}

// unit returns a float around 0, of one of several sizes, so that each addition is
// likely to be rounded.
func unit(u uint64) float64 {
	return (float64(u>>11)/(1<<53) - 0.5) * []float64{1, 1e3, 1e-3, 1e6}[u%4]
}

// sumOf is the order of additions, in the plainest way.
func sumOf(vals []float64) float64 {
	if len(vals) == 0 {
		return 0
	}
	var sums []float64
	for block := range slices.Chunk(vals, 1024) {
		var lanes [32]float64
		for i, v := range block {
			lanes[i%32] += v
		}
		for half := 16; half >= 1; half /= 2 {
			for j := range half {
				lanes[j] += lanes[j+half]
			}
		}
		sums = append(sums, lanes[0])
	}
	if len(sums) == 1 {
		return sums[0]
	}
	return sumOf(sums)
}

func isFloat[V pando.Number]() bool { return V(3)/V(2) != V(1) }

// summaryOf is what Aggregate must return.
func summaryOf[V pando.Number](vals []V) (s pando.Summary[V]) {
	if len(vals) == 0 {
		return s
	}
	s = pando.Summary[V]{Count: len(vals), Min: vals[0], Max: vals[0]}
	exact, wide := new(big.Int), make([]float64, len(vals))
	for i, v := range vals {
		s.Sum += v
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		wide[i] = float64(v)
		if !isFloat[V]() {
			if v < 0 {
				exact.Add(exact, big.NewInt(int64(v)))
			} else {
				exact.Add(exact, new(big.Int).SetUint64(uint64(v)))
			}
		}
	}
	s.Mean, _ = new(big.Float).SetInt(exact).Float64()
	if isFloat[V]() {
		s.Mean = sumOf(wide)
		s.Sum = V(s.Mean)
	}
	s.Mean /= float64(len(vals))
	for _, v := range []*V{&s.Sum, &s.Min, &s.Max} {
		if *v != *v {
			*v = V(math.NaN()) // this one and no other
		}
	}
	if s.Mean != s.Mean {
		s.Mean = math.NaN()
	}
	return s
}

// sameSummary compares bit by bit, but for means of integers, which may be off by
// the last bit.
func sameSummary[V pando.Number](a, b pando.Summary[V]) bool {
	mean := sameBits(a.Mean, b.Mean) || !isFloat[V]() && math.Abs(a.Mean-b.Mean) <= 1e-15*math.Abs(a.Mean)
	return a.Count == b.Count && sameBits(a.Sum, b.Sum) && sameBits(a.Min, b.Min) && sameBits(a.Max, b.Max) && mean
}

// sameBits reports whether two numbers are the same.
func sameBits[V pando.Number](a, b V) bool {
	if a != a || b != b {
		return a != a && b != b && math.Float64bits(float64(a)) == math.Float64bits(float64(b))
	}
	return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// vectorIndexes returns indexes of the same entries, each in another way.
func vectorIndexes[K pando.Key, V pando.Number](t *testing.T, m *facetest.Model[K, V], rng *rand.Rand) map[string]pando.Index[K, V] {
	all := map[string]pando.Index[K, V]{}
	unique := true
	for i := 1; i < len(m.Keys); i++ {
		unique = unique && cmp.Compare(m.Keys[i-1], m.Keys[i]) != 0
	}
	for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.Apart, pando.Pairs, pando.Blocked, pando.Compressed, pando.Radix} {
		f, err := pando.Freeze(m.Keys, m.Vals, pando.Layout(l), pando.Workers(1+rng.IntN(8)))
		if errors.Is(err, pando.ErrOption) || errors.Is(err, pando.ErrLayout) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint("Frozen, ", l)] = f
	}
	if facetest.CodeBytes[K]() == 0 || !unique {
		return all
	}
	loaded, err := pando.TreeOf(m.Keys, m.Vals, pando.Workers(1+rng.IntN(8)))
	if err != nil {
		t.Fatal(err)
	}
	grown, err := pando.NewTree[K, V](pando.Workers(1 + rng.IntN(8)))
	if err != nil {
		t.Fatal(err)
	}
	half := grown.Snapshot()
	for i, r := range rng.Perm(len(m.Keys)) {
		if err := grown.Set(m.Keys[r], m.Vals[r]); err != nil {
			t.Fatal(err)
		}
		if i == len(m.Keys)/2 {
			half.Close()
			half = grown.Snapshot()
		}
	}
	half.Close()
	all["Tree, loaded"], all["Tree, grown"], all["Snapshot"] = loaded, grown, grown.Snapshot()
	other, err := pando.TreeOf(m.Keys, m.Vals)
	if err != nil {
		t.Fatal(err)
	}
	all["another Index"] = struct{ pando.Index[K, V] }{other}
	return all
}

// checkVectors compares all vector operations that read with their definition.
func checkVectors[K pando.Key, V pando.Number](ix pando.Index[K, V], m *facetest.Model[K, V], num numbers[V], ranges [][2]K, rng *rand.Rand) error {
	var los, his []K
	var want []pando.Summary[V]
	for _, r := range ranges {
		first, end := m.Span(r[0], r[1], 0)
		vals := m.Vals[first:end]
		sum := summaryOf(vals)
		if got := pando.Aggregate(ix, r[0], r[1]); !sameSummary(got, sum) {
			return fmt.Errorf("Aggregate(%v, %v) is %+v, want %+v", r[0], r[1], got, sum)
		}
		los, his, want = append(los, r[0]), append(his, r[1]), append(want, sum)
		if err := checkHistogram(ix, r, vals, num, rng); err != nil {
			return err
		}
		if err := checkSelect(ix, r, m.Keys[first:end], vals, num, rng); err != nil {
			return err
		}
	}
	got := make([]pando.Summary[V], len(los)+1)
	if pando.AggregateBatch(ix, los, his, got); !slices.EqualFunc(got[:len(los)], want, sameSummary[V]) {
		return fmt.Errorf("AggregateBatch(%v, %v) is %+v, want %+v", los, his, got, want)
	}
	return nil
}

func checkHistogram[K pando.Key, V pando.Number](ix pando.Index[K, V], r [2]K, vals []V, num numbers[V], rng *rand.Rand) error {
	bounds := make([]V, []int{0, 1, 5, 100}[rng.IntN(4)])
	for i := range bounds {
		bounds[i] = num.some(rng)
	}
	slices.Sort(bounds)
	got, want := make([]int, len(bounds)+2), make([]int, len(bounds)+2)
	got[len(bounds)+1] = 7
	want[len(bounds)+1] = 7
	for _, v := range vals {
		i := 0
		for i < len(bounds) && v >= bounds[i] {
			i++
		}
		want[i]++
	}
	if pando.Histogram(ix, r[0], r[1], bounds, got); !slices.Equal(got, want) {
		return fmt.Errorf("Histogram(%v, %v, %v) is %v, want %v", r[0], r[1], bounds, got, want)
	}
	return nil
}

func checkSelect[K pando.Key, V pando.Number](ix pando.Index[K, V], r [2]K, keys []K, vals []V, num numbers[V], rng *rand.Rand) error {
	a, b := num.some(rng), num.some(rng)
	if len(vals) > 0 && rng.IntN(2) == 0 {
		a = vals[rng.IntN(len(vals))]
	}
	conds := conditions(a, b)
	c := conds[rng.IntN(len(conds))]
	got := pando.Select(ix, r[0], r[1], c.cond)
	if got.Len() != 1 {
		return fmt.Errorf("Select returns %d ranges", got.Len())
	}
	ks, vs := got.At(0)
	n := 0
	for i, v := range vals {
		if !c.is(v) {
			continue
		}
		if n >= len(ks) || cmp.Compare(ks[n], keys[i]) != 0 || !sameBits(vs[n], v) {
			return fmt.Errorf("Select(%v, %v, %s %v %v): entry %d is not %v, %v", r[0], r[1], c.name, a, b, n, keys[i], v)
		}
		n++
	}
	if n != len(ks) || len(vs) != n {
		return fmt.Errorf("Select(%v, %v, %s %v %v) returns %d keys and %d values, want %d", r[0], r[1], c.name, a, b, len(ks), len(vs), n)
	}
	return nil
}

// condition is a Condition with its definition.
type condition[V pando.Number] struct {
	name string
	cond pando.Condition[V]
	is   func(v V) bool
}

func conditions[V pando.Number](a, b V) []condition[V] {
	return []condition[V]{
		{"Below", pando.Below(a), func(v V) bool { return v < a }},
		{"Above", pando.Above(a), func(v V) bool { return v > a }},
		{"Between", pando.Between(a, b), func(v V) bool { return v >= a && v <= b }},
		{"Equal", pando.Equal(a), func(v V) bool { return v == a }},
		{"nothing", pando.Condition[V]{}, func(V) bool { return false }},
	}
}

// checkTransform changes a tree in every way, beside a model.
func checkTransform[K pando.Key, V pando.Number](t *pando.Tree[K, V], m *facetest.Model[K, V], num numbers[V], ranges [][2]K, rng *rand.Rand) error {
	vals := slices.Clone(m.Vals)
	snap := t.Snapshot()
	defer snap.Close()
	for _, r := range ranges {
		a, b := num.some(rng), num.some(rng)
		if !(a <= b) {
			a, b = b, a
		}
		if !(a <= b) { // NaN
			a, b = 1, 2
		}
		changes := []struct {
			name string
			c    pando.Change[V]
			of   func(v V) V
		}{
			{"Add", pando.Add(a), func(v V) V { return v + a }},
			{"Multiply", pando.Multiply(a), func(v V) V { return v * a }},
			{"Clamp", pando.Clamp(a, b), func(v V) V { return min(max(v, a), b) }},
			{"SetTo", pando.SetTo(a), func(V) V { return a }},
			{"nothing", pando.Change[V]{}, func(v V) V { return v }},
		}
		c := changes[rng.IntN(len(changes))]
		first, end := m.Span(r[0], r[1], 0)
		for i := first; i < end; i++ {
			vals[i] = c.of(vals[i])
		}
		if n, err := pando.Transform(t, r[0], r[1], c.c); n != end-first || err != nil {
			return fmt.Errorf("Transform(%v, %v, %s) changes %d, %v; want %d", r[0], r[1], c.name, n, err, end-first)
		}
		if err := holds(t, m.Keys, vals); err != nil {
			return fmt.Errorf("after Transform(%v, %v, %s %v %v) %w", r[0], r[1], c.name, a, b, err)
		}
	}
	return holds(snap, m.Keys, m.Vals) // it is the moment before
}

// holds returns an error if an index has other entries than these. Any NaN will do for
// another.
func holds[K pando.Key, V pando.Number](ix pando.Index[K, V], keys []K, vals []V) error {
	i, c := 0, ix.Cursor()
	for ; c.Next() && i < len(keys); i++ {
		k, v := c.Key(), c.Value()
		if cmp.Compare(k, keys[i]) != 0 || !sameBits(v, vals[i]) && (v == v || vals[i] == vals[i]) {
			return fmt.Errorf("entry %d is %v, %v; want %v", i, k, v, vals[i])
		}
	}
	if i != len(keys) || c.Valid() {
		return fmt.Errorf("there are other entries than %d", len(keys))
	}
	return nil
}

// vectors runs all vector operations over one pair of types, on every path.
func vectors[K pando.Key, V pando.Number](d facetest.Domain[K], num numbers[V], sizes ...int) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		for _, n := range sizes {
			keys := make(map[K]bool, n)
			for i := 0; len(keys) < n; i++ {
				k := d.Num(i)
				if i < len(d.Ends) {
					k = d.Ends[i]
				}
				if k == k {
					keys[k] = true
				}
			}
			var ks []K
			var vs []V
			for k := range keys {
				ks, vs = append(ks, k), append(vs, num.some(rng))
			}
			if n%2 == 1 && n < 3000 {
				for i := range n / 20 { // equal keys
					ks[i] = ks[n-1-i]
				}
			}
			if isFloat[V]() && n%3 == 0 && n > 0 {
				vs[rng.IntN(n)] = V([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)])
			}
			m := facetest.NewModel(ks, vs, sameBits[V])
			checkAll(t, m, d, num, rng)
		}
	}
}

func checkAll[K pando.Key, V pando.Number](t *testing.T, m *facetest.Model[K, V], d facetest.Domain[K], num numbers[V], rng *rand.Rand) {
	n := len(m.Keys)
	ranges := [][2]K{{d.Ends[1], d.Ends[0]}}
	if n > 0 {
		ranges = append(ranges, [2]K{m.Keys[0], m.Keys[n-1]}, [2]K{m.Keys[n-1], m.Keys[0]}, [2]K{m.Keys[n/2], m.Keys[n/2]})
	}
	for range 12 {
		if n == 0 {
			break
		}
		a, b := m.Keys[rng.IntN(n)], d.Num(rng.IntN(n+10))
		if cmp.Compare(a, b) > 0 {
			a, b = b, a
		}
		ranges = append(ranges, [2]K{a, b})
	}
	if n > 10_000 {
		ranges = ranges[:4]
	}
	paths := simd.Paths()
	for name, ix := range vectorIndexes(t, m, rng) {
		for _, p := range paths {
			undo := simd.Use(p)
			err := checkVectors(ix, m, num, ranges, rng)
			undo()
			if err != nil {
				t.Fatalf("%d entries, %s, %v: %v", n, name, p, err)
			}
		}
		if tree, ok := ix.(*pando.Tree[K, V]); ok {
			if err := checkTransform(tree, m, num, ranges, rng); err != nil {
				t.Fatalf("%d entries, %s: %v", n, name, err)
			}
			continue
		}
		if _, ok := ix.(*pando.Frozen[K, V]); ok {
			ix.Close()
		}
	}
}

var vectorSizes = []int{0, 1, 2, 31, 32, 33, 255, 1000, 1023, 1024, 1025, 2500}

// Numbers of every width are here, signed and not, and keys of every kind; not each
// with each: below the face of an index there are no types, and to compile all that is
// asked of a pair takes a second. Other tests of this package have the same pairs.
func TestVectors(t *testing.T) {
	t.Run("uint64 to uint64", vectors(facetest.Integers[uint64](), whole[uint64](), vectorSizes...))
	t.Run("int64 to float64", vectors(facetest.Integers[int64](), floats64[float64](), vectorSizes...))
	t.Run("int32 to float32", vectors(facetest.Integers[int32](), floats32[float32](), vectorSizes...))
	t.Run("uint32 to int32", vectors(facetest.Integers[uint32](), whole[int32](), 700, 1500))
	t.Run("float64 to uint32", vectors(facetest.Float64s[facetest.Celsius](), whole[facetest.ID](), 600, 1500))
	t.Run("uint16 to int64", vectors(facetest.Integers[uint16](), whole[int64](), 700, 1500))
	t.Run("uint64 to int8", vectors(facetest.Integers[uint64](), whole[facetest.Offset](), 700, 1500))
	t.Run("float32 to uint8", vectors(facetest.Float32s[float32](), whole[uint8](), 700, 1500))
	t.Run("int to uint16", vectors(facetest.Integers[int](), whole[uint16](), 700))
	t.Run("string to int16", vectors(facetest.Strings[string](), whole[int16](), 0, 1, 700, 1500))
}

// The types whose width is the machine's are those of that width.
func TestMachineWords(t *testing.T) {
	signed, unsigned := reflect.TypeFor[int64](), reflect.TypeFor[uint64]()
	if strconv.IntSize == 32 {
		signed, unsigned = reflect.TypeFor[int32](), reflect.TypeFor[uint32]()
	}
	for of, as := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[int](): signed, reflect.TypeFor[uint](): unsigned, reflect.TypeFor[uintptr](): unsigned,
	} {
		got, ok := vector.TypeOf(of)
		if want, _ := vector.TypeOf(as); !ok || got != want {
			t.Errorf("%v is %v, %t; want %v", of, got, ok, want)
		}
	}
}

// Many pieces, on several workers.
func TestVectorsLarge(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("takes long under the race detector")
	}
	t.Run("int64 to float64", vectors(facetest.Integers[int64](), floats64[float64](), 140_000))
	t.Run("uint32 to int32", vectors(facetest.Integers[uint32](), whole[int32](), 70_001))
}
