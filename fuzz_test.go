package pando_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// cursor reads a fuzzer's bytes. Behind their end are zeros.
type cursor struct{ rest []byte }

func (c *cursor) more() bool { return len(c.rest) > 0 }

func (c *cursor) byte() byte {
	if !c.more() {
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *cursor) uint64() uint64 {
	var b [8]byte
	c.rest = c.rest[copy(b[:], c.rest):]
	return binary.LittleEndian.Uint64(b[:])
}

// fuzzKeys reads up to n keys. One byte says how the next one comes about:
//
//	  0…79   again the key so many before
//	 80…159  a number close to others
//	160…199  one of the domain's ends
//	200…239  eight bytes of bits
//	240…255  a run of up to 255 numbers, so that few bytes make a deep tree
func fuzzKeys[K pando.Key](c *cursor, d facetest.Domain[K], n int) []K {
	made := fuzzMade(c, len(d.Ends), n)
	keys := make([]K, len(made))
	for i, m := range made {
		switch m.how {
		case 'n':
			keys[i] = d.Num(int(m.n))
		case 'e':
			keys[i] = d.Ends[m.n]
		case 'b':
			keys[i] = d.Bits(m.n)
		}
	}
	return keys
}

// fuzzed is how a key comes about: by a number, as an end, by its bits.
type fuzzed struct {
	how byte
	n   uint64
}

// fuzzMade reads how up to n keys come about, of a domain with so many ends.
func fuzzMade(c *cursor, ends, n int) []fuzzed {
	keys := make([]fuzzed, 0, min(n, 4096))
	for len(keys) < n && c.more() {
		switch op := int(c.byte()); {
		case op < 80 && len(keys) > 0:
			keys = append(keys, keys[len(keys)-1-op%len(keys)])
		case op < 160:
			keys = append(keys, fuzzed{'n', uint64(op)})
		case op < 200:
			keys = append(keys, fuzzed{'e', uint64(op % ends)})
		case op < 240:
			keys = append(keys, fuzzed{'b', c.uint64()})
		default:
			from, step := int(c.byte())*16, op-239
			for i := range int(c.byte()) {
				keys = append(keys, fuzzed{'n', uint64(from + i*step)})
			}
		}
	}
	return keys
}

// fuzzTypes has a fuzzed build for each type of key, with values as in TestEveryType.
var fuzzTypes = []func(*testing.T, *cursor){
	fuzzEither(facetest.Integers[uint64](), facetest.Uint64Values, facetest.StringValues), fuzzWith(facetest.Integers[uint32](), facetest.Uint32Values),
	fuzzWith(facetest.Float64s[float64](), facetest.StringValues), fuzzWith(facetest.Float32s[float32](), facetest.Int32Values),
	fuzzWith(facetest.Integers[int64](), facetest.Uint32Values), fuzzWith(facetest.Integers[int32](), facetest.Uint64Values),
	fuzzWith(facetest.Integers[uint8](), facetest.BoolValues), fuzzWith(facetest.Integers[int8](), facetest.Uint32Values),
	fuzzWith(facetest.Integers[uint16](), facetest.TriplesValues), fuzzWith(facetest.Integers[int16](), facetest.RecordValues),
	fuzzWith(facetest.Integers[int](), facetest.StringValues), fuzzWith(facetest.Integers[uint](), facetest.FloatValues), fuzzWith(facetest.Integers[uintptr](), facetest.BytesValues),
	fuzzEither(facetest.Strings[string](), facetest.Uint64Values, facetest.StringValues),
}

// fuzzWith builds with values of one type, whatever the byte for it says.
func fuzzWith[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(*testing.T, *cursor) {
	return func(t *testing.T, c *cursor) {
		c.byte()
		fuzzBuild(t, c, d, v)
	}
}

// fuzzEither builds with values of one type or another.
func fuzzEither[K pando.Key, V, W any](d facetest.Domain[K], v facetest.Values[V], w facetest.Values[W]) func(*testing.T, *cursor) {
	return func(t *testing.T, c *cursor) {
		if c.byte()%3 == 2 {
			fuzzBuild(t, c, d, w)
			return
		}
		fuzzBuild(t, c, d, v)
	}
}

// FuzzFrozen builds an index from the fuzzer's bytes and asks it for keys from
// the same bytes: one byte each for the types of key and value, one for the
// options, two for the number of keys, then keys, then keys to ask for.
func FuzzFrozen(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &cursor{data}
		fuzzTypes[int(c.byte())%len(fuzzTypes)](t, c)
	})
}

func fuzzBuild[K pando.Key, V any](t *testing.T, c *cursor, d facetest.Domain[K], v facetest.Values[V]) {
	o := int(c.byte())
	layout := pando.LayoutKind(o % 10) // one too many
	opts := []pando.Option{
		pando.Layout(layout), pando.Workers(o / 10 % 4), pando.HugePages(pando.PageMode(o / 40 % 3)),
	}
	keys := fuzzKeys(c, d, int(c.byte())+256*int(c.byte()&15))
	n := len(keys)
	asked := func(*facetest.Model[K, V]) []K { return append(fuzzKeys(c, d, 300), d.Ends...) }
	_, err := freezeAndCheck(keys, d, v, asked, opts...)
	if layout != pando.AutoLayout && layout != pando.Implicit && !slices.Contains(facetest.Layouts[K](v), layout) {
		if !errors.Is(err, pando.ErrLayout) {
			t.Fatalf("%v: %v", layout, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v of %d keys: %v", layout, n, err)
	}
}

// FuzzStrings does the same for string keys as they are: the pieces of a text
// between separators, in every layout. Behind a long prefix where the separator
// is odd.
func FuzzStrings(f *testing.F) {
	f.Fuzz(func(t *testing.T, keys, asked string, separator byte) {
		k := strings.Split(keys, string([]byte{separator}))
		if separator%2 == 1 {
			for i := range k {
				k[i] = longSame + k[i]
			}
		}
		vals := make([]uint64, len(k))
		for i := range vals {
			vals[i] = facetest.Uint64Values.Of(i)
		}
		m := facetest.NewModel(k, vals, facetest.Uint64Values.Same)
		asks := append(strings.Split(asked, string([]byte{separator})), k[:min(len(k), 100)]...)
		for _, layout := range facetest.Layouts[string](facetest.Uint64Values) {
			ix := facetest.MustFreeze(t, k, vals, pando.Layout(layout))
			if err := facetest.CheckIndex(ix, m, asks); err != nil {
				t.Fatalf("%v: %v", layout, err)
			}
			ix.Close()
		}
	})
}
