package pando_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Every method returns what a sorted slice does, for every type of key, with
// values beside the keys and in Go memory. What keys and values have to do with
// each other is decided by their widths, so that TestEveryValueType needs three
// types of keys only: each pair of types is compiled anew.
func TestEveryKeyType(t *testing.T) {
	t.Run("int", keyType64(facetest.Integers[int]()))
	t.Run("int8", keyType32(facetest.Integers[int8]()))
	t.Run("int16", keyType32(facetest.Integers[int16]()))
	t.Run("int32", keyType32(facetest.Integers[int32]()))
	t.Run("int64", keyType64(facetest.Integers[int64]()))
	t.Run("uint", keyType64(facetest.Integers[uint]()))
	t.Run("uint8", keyType32(facetest.Integers[uint8]()))
	t.Run("uint16", keyType32(facetest.Integers[uint16]()))
	t.Run("uint32", keyType32(facetest.Integers[uint32]()))
	t.Run("uint64", keyType64(facetest.Integers[uint64]()))
	t.Run("uintptr", keyType64(facetest.Integers[uintptr]()))
	t.Run("float32", keyType32(facetest.Float32s[float32]()))
	t.Run("float64", keyType64(facetest.Float64s[float64]()))
	t.Run("string", keyType64(facetest.Strings[string]()))
	t.Run("named float64", keyType64(facetest.Float64s[facetest.Celsius]()))
	t.Run("named uint32", keyType32(facetest.Integers[facetest.ID]()))
	t.Run("named int8", keyType32(facetest.Integers[facetest.Offset]()))
	t.Run("named string", keyType64(facetest.Strings[facetest.Label]()))
}

// keyType64 is for keys with codes of 64 bits, and strings.
func keyType64[K pando.Key](d facetest.Domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint64", properties(d, facetest.Uint64Values))
		t.Run("string", properties(d, facetest.StringValues))
	}
}

// keyType32 is for keys with codes of 32 bits.
func keyType32[K pando.Key](d facetest.Domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint32", properties(d, facetest.Uint32Values))
		t.Run("string", properties(d, facetest.StringValues))
	}
}

// The same for every kind of value, beside keys of both widths and strings.
func TestEveryValueType(t *testing.T) {
	t.Run("uint64 keys", valueTypes(facetest.Integers[uint64]()))
	t.Run("int32 keys", valueTypes(facetest.Integers[int32]()))
	t.Run("string keys", valueTypes(facetest.Strings[string]()))
}

func valueTypes[K pando.Key](d facetest.Domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint64", properties(d, facetest.Uint64Values))
		t.Run("uint32", properties(d, facetest.Uint32Values))
		t.Run("int32", properties(d, facetest.Int32Values))
		t.Run("float64", properties(d, facetest.FloatValues))
		t.Run("array of bytes", properties(d, facetest.BytesValues))
		t.Run("struct", properties(d, facetest.RecordValues))
		t.Run("empty", properties(d, facetest.EmptyValues))
		t.Run("pointer", properties(d, facetest.PointerValues))
		t.Run("slice", properties(d, facetest.SliceValues))
		t.Run("array", properties(d, facetest.TriplesValues))
		t.Run("bool", properties(d, facetest.BoolValues))
	}
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
					if err := buildAndCheck(keys, d, v, layout, rng); err != nil {
						t.Fatalf("%v, %d keys %s: %v", layout, n, set.Name, err)
					}
				}
			}
		}
	}
}

// buildAndCheck builds from keys as they are or sorted.
func buildAndCheck[K pando.Key, V any](keys []K, d facetest.Domain[K], v facetest.Values[V], layout pando.LayoutKind, rng *rand.Rand) error {
	if rng.IntN(2) == 0 {
		slices.SortStableFunc(keys, cmp.Compare[K])
	}
	vals := make([]V, len(keys))
	for i := range vals {
		vals[i] = v.Of(i)
	}
	given, givenVals := slices.Clone(keys), slices.Clone(vals)
	ix, err := pando.Freeze(keys, vals, facetest.Options(layout, facetest.Layouts[K](v)[0], rng)...)
	if err != nil {
		return err
	}
	defer ix.Close()
	if got := ix.Stats().Layout; got != layout {
		return fmt.Errorf("layout %v, want %v", got, layout)
	}
	if !facetest.SameKeys(keys, given) || !slices.EqualFunc(vals, givenVals, v.Same) {
		return fmt.Errorf("Freeze has changed its input")
	}
	// Nothing is kept of the slices.
	for i := range keys {
		keys[i] = d.Ends[0]
	}
	clear(vals)
	m := facetest.NewModel(given, givenVals, v.Same)
	return facetest.CheckIndex(ix, m, facetest.Probes(m, d, 80, rng))
}
