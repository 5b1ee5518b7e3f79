package pando_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Every method returns what a sorted slice does, for every type of key and every kind of
// value. Below the face there are no types, so that each type of key comes once, and with
// it values that others do not have; uint64 and strings, whose codes are the keys
// themselves, come with values of each place that values have. Other tests take their
// types from here as well: each pair of them is compiled anew.
func TestEveryType(t *testing.T) {
	t.Run("uint64 to uint64", properties(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("uint64 to string", properties(facetest.Integers[uint64](), facetest.StringValues))
	t.Run("uint64 to nothing", properties(facetest.Integers[uint64](), facetest.EmptyValues))
	t.Run("uint64 to pointer", properties(facetest.Integers[uint64](), facetest.PointerValues))
	t.Run("uint64 to slice", properties(facetest.Integers[uint64](), facetest.SliceValues))
	t.Run("int to string", properties(facetest.Integers[int](), facetest.StringValues))
	t.Run("int8 to uint32", properties(facetest.Integers[int8](), facetest.Uint32Values))
	t.Run("int16 to struct", properties(facetest.Integers[int16](), facetest.RecordValues))
	t.Run("int32 to uint64", properties(facetest.Integers[int32](), facetest.Uint64Values))
	t.Run("int64 to uint32", properties(facetest.Integers[int64](), facetest.Uint32Values))
	t.Run("uint to float64", properties(facetest.Integers[uint](), facetest.FloatValues))
	t.Run("uint8 to bool", properties(facetest.Integers[uint8](), facetest.BoolValues))
	t.Run("uint16 to array", properties(facetest.Integers[uint16](), facetest.TriplesValues))
	t.Run("uint32 to uint32", properties(facetest.Integers[uint32](), facetest.Uint32Values))
	t.Run("uintptr to array of bytes", properties(facetest.Integers[uintptr](), facetest.BytesValues))
	t.Run("float32 to int32", properties(facetest.Float32s[float32](), facetest.Int32Values))
	t.Run("float64 to string", properties(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("string to uint64", properties(facetest.Strings[string](), facetest.Uint64Values))
	t.Run("string to uint32", properties(facetest.Strings[string](), facetest.Uint32Values))
	t.Run("string to string", properties(facetest.Strings[string](), facetest.StringValues))
	t.Run("string to nothing", properties(facetest.Strings[string](), facetest.EmptyValues))
	t.Run("named float64 to string", properties(facetest.Float64s[facetest.Celsius](), facetest.StringValues))
	t.Run("named string to string", properties(facetest.Strings[facetest.Label](), facetest.StringValues))
}

// properties builds indexes of all sizes, layouts and key sets, and compares
// each with its model on every path. Of the layouts that AutoLayout does not
// choose, every fifth will do; a quick run takes a tenth of all.
func properties[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		first := rng.IntN(100)
		for _, layout := range facetest.Layouts[K](v) {
			oneIn := seed.Step(10)
			if layout != facetest.Layouts[K](v)[0] && layout != pando.Apart {
				oneIn = seed.Size(20, 5)
			}
			for j, n := range facetest.Sizes[K](layout) {
				for i, set := range facetest.KeySets(d, rng) {
					if (first+i+j)%oneIn > 0 {
						continue
					}
					keys := make([]K, n)
					for i := range keys {
						keys[i] = set.Key(i, n)
					}
					if rng.IntN(2) == 0 {
						keys = facetest.NewModel(keys, make([]V, n), v.Same).Keys // sorted
					}
					asked := func(m *facetest.Model[K, V]) []K { return facetest.Probes(m, d, seed.Size(50, 80), rng) }
					got, err := freezeAndCheck(keys, d, v, asked, facetest.BuildOptions(layout, facetest.Layouts[K](v)[0], rng)...)
					if err != nil || got != layout {
						t.Fatalf("%v is %v, %d keys %s: %v", layout, got, n, set.Name, err)
					}
				}
			}
		}
	}
}

// freezeAndCheck builds an index, compares it with its model, and returns its layout. The
// keys are then others.
func freezeAndCheck[K pando.Key, V any](keys []K, d facetest.Domain[K], v facetest.Values[V], asked func(*facetest.Model[K, V]) []K, opts ...pando.Option) (pando.LayoutKind, error) {
	vals := make([]V, len(keys))
	for i := range vals {
		vals[i] = v.Of(i)
	}
	given, givenVals := slices.Clone(keys), slices.Clone(vals)
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		return 0, err
	}
	defer ix.Close()
	layout := ix.Stats().Layout
	if !facetest.SameKeys(keys, given) || !slices.EqualFunc(vals, givenVals, v.Same) {
		return layout, fmt.Errorf("Freeze has changed its input")
	}
	// Nothing is kept of the slices.
	for i := range keys {
		keys[i] = d.Ends[0]
	}
	clear(vals)
	m := facetest.NewModel(given, givenVals, v.Same)
	return layout, facetest.CheckIndex(ix, m, asked(m))
}
