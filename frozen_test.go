package pando_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// Every method gives what a sorted slice gives, for every type of key, with
// values beside the keys, in a column, and in Go memory.
func TestEveryKeyType(t *testing.T) {
	t.Run("int", keyType(integers[int]()))
	t.Run("int8", keyType(integers[int8]()))
	t.Run("int16", keyType(integers[int16]()))
	t.Run("int32", keyType(integers[int32]()))
	t.Run("int64", keyType(integers[int64]()))
	t.Run("uint", keyType(integers[uint]()))
	t.Run("uint8", keyType(integers[uint8]()))
	t.Run("uint16", keyType(integers[uint16]()))
	t.Run("uint32", keyType(integers[uint32]()))
	t.Run("uint64", keyType(integers[uint64]()))
	t.Run("uintptr", keyType(integers[uintptr]()))
	t.Run("float32", keyType(float32s[float32]()))
	t.Run("float64", keyType(float64s[float64]()))
	t.Run("string", keyType(texts[string]()))
	t.Run("named float64", keyType(float64s[celsius]()))
	t.Run("named uint32", keyType(integers[id]()))
	t.Run("named int8", keyType(integers[offset]()))
	t.Run("named string", keyType(texts[label]()))
}

func keyType[K pando.Key](d domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint64", properties(d, uint64Values))
		t.Run("uint32", properties(d, uint32Values))
		t.Run("string", properties(d, stringValues))
	}
}

// The same for every kind of value, beside keys of both widths and strings.
func TestEveryValueType(t *testing.T) {
	t.Run("uint64 keys", valueTypes(integers[uint64]()))
	t.Run("float64 keys", valueTypes(float64s[float64]()))
	t.Run("int32 keys", valueTypes(integers[int32]()))
	t.Run("uint16 keys", valueTypes(integers[uint16]()))
	t.Run("string keys", valueTypes(texts[string]()))
}

func valueTypes[K pando.Key](d domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("int32", properties(d, int32Values))
		t.Run("float64", properties(d, floatValues))
		t.Run("array of bytes", properties(d, bytesValues))
		t.Run("struct", properties(d, recordValues))
		t.Run("empty", properties(d, emptyValues))
		t.Run("pointer", properties(d, pointerValues))
		t.Run("slice", properties(d, sliceValues))
		t.Run("array", properties(d, triplesValues))
		t.Run("bool", properties(d, boolValues))
	}
}

// codeBytes is the width of a key in the index; 0 for strings.
func codeBytes[K pando.Key]() int {
	switch t := reflect.TypeFor[K](); {
	case t.Kind() == reflect.String:
		return 0
	case t.Size() <= 4:
		return 4
	}
	return 8
}

// layouts lists the layouts that keys and values allow, AutoLayout's first.
func layouts[K pando.Key, V any](v values[V]) []pando.LayoutKind {
	switch width := codeBytes[K](); {
	case width == 0:
		if autoStrings() == pando.Compressed {
			return []pando.LayoutKind{pando.Compressed, pando.Apart}
		}
		return []pando.LayoutKind{pando.Apart, pando.Compressed}
	case v.inline == width:
		return []pando.LayoutKind{pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed}
	}
	return []pando.LayoutKind{pando.Apart, pando.Blocked, pando.Compressed}
}

// autoStrings is what AutoLayout is for string keys.
var autoStrings = sync.OnceValue(func() pando.LayoutKind {
	ix, err := pando.Freeze([]string{"a"}, []int{1})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	return ix.Stats().Layout
})

// sizes lists 0, 1, and the borders of nodes and levels up to three levels.
func sizes[K pando.Key](layout pando.LayoutKind) []int {
	out := []int{0, 1, 2, 3}
	perLeaf, fanout, levels := 8, 9, 3
	if codeBytes[K]() == 4 {
		perLeaf, fanout, levels = 16, 17, 2
	}
	switch {
	case layout == pando.Compressed: // pages of 256
		return append(out, 16, 255, 256, 257, 1000, 9*256+1)
	case codeBytes[K]() == 0: // strings have no nodes
		return append(out, 100, 3000)
	case layout == pando.Pairs:
		perLeaf /= 2
	case layout == pando.Blocked:
		fanout--
	}
	n := perLeaf
	for range levels + 1 {
		out = append(out, n-1, n, n+1)
		n *= fanout
	}
	return out
}

// keySet is a way to choose keys that tries to break something.
type keySet[K pando.Key] struct {
	name string
	key  func(i, n int) K
}

func keySets[K pando.Key](d domain[K], rng *rand.Rand) []keySet[K] {
	end := d.ends[rng.IntN(len(d.ends))]
	return []keySet[K]{
		{"random", func(int, int) K { return d.bits(rng.Uint64()) }},
		{"dense", func(i, _ int) K { return d.num(2 * i) }},
		{"few distinct", func(_, n int) K { return d.num(2 * rng.IntN(n/7+1)) }},
		{"ends", func(int, int) K { return d.ends[rng.IntN(len(d.ends))] }},
		{"all least", func(int, int) K { return slices.MinFunc(d.ends, cmp.Compare[K]) }},
		{"all greatest", func(int, int) K { return slices.MaxFunc(d.ends, cmp.Compare[K]) }},
		{"all equal", func(int, int) K { return end }},
	}
}

// properties builds indexes of all sizes, layouts and key sets, and compares
// each with its model on every path. Of the layouts that AutoLayout does not
// choose, every fifth will do; the race detector, ten times slower, gets every
// fourth.
func properties[K pando.Key, V any](d domain[K], v values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		for _, layout := range layouts[K](v) {
			for j, n := range sizes[K](layout) {
				for i, set := range keySets(d, rng) {
					if raceDetector && (i+j)%4 > 0 || layout != layouts[K](v)[0] && layout != pando.Apart && (i+j)%5 > 0 {
						continue
					}
					keys := make([]K, n)
					for i := range keys {
						keys[i] = set.key(i, n)
					}
					if err := buildAndCheck(keys, d, v, layout, rng); err != nil {
						t.Fatalf("%v, %d keys %s: %v", layout, n, set.name, err)
					}
				}
			}
		}
	}
}

// options chooses a layout, by its name or as the default where it is the
// default, and what should make no difference.
func options(layout, preferred pando.LayoutKind, rng *rand.Rand) []pando.Option {
	if layout == preferred && rng.IntN(2) == 0 {
		layout = pando.AutoLayout
	}
	return []pando.Option{
		pando.Layout(layout),
		pando.Workers([]int{0, 1, 2, 5}[rng.IntN(4)]),
		pando.HugePages(pando.PageMode(rng.IntN(3))),
		pando.On([]pando.Device{pando.Auto, pando.CPU}[rng.IntN(2)]),
		pando.ResponseTime([]time.Duration{0, 1, time.Second}[rng.IntN(3)]),
	}
}

// buildAndCheck builds from keys as they are or sorted.
func buildAndCheck[K pando.Key, V any](keys []K, d domain[K], v values[V], layout pando.LayoutKind, rng *rand.Rand) error {
	if rng.IntN(2) == 0 {
		slices.SortStableFunc(keys, cmp.Compare[K])
	}
	vals := make([]V, len(keys))
	for i := range vals {
		vals[i] = v.of(i)
	}
	given, givenVals := slices.Clone(keys), slices.Clone(vals)
	ix, err := pando.Freeze(keys, vals, options(layout, layouts[K](v)[0], rng)...)
	if err != nil {
		return err
	}
	defer ix.Close()
	if got := ix.Stats().Layout; got != layout {
		return fmt.Errorf("layout %v, want %v", got, layout)
	}
	if !sameKeys(keys, given) || !slices.EqualFunc(vals, givenVals, v.same) {
		return fmt.Errorf("Freeze has changed its input")
	}
	// Nothing is kept of the slices.
	for i := range keys {
		keys[i] = d.ends[0]
	}
	clear(vals)
	m := newModel(given, givenVals, v.same)
	return checkIndex(ix, m, probes(m, d, 80, rng))
}
