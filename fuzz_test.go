package pando_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
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
func fuzzKeys[K pando.Key](c *cursor, d domain[K], n int) []K {
	keys := make([]K, 0, min(n, 4096))
	for len(keys) < n && c.more() {
		switch op := int(c.byte()); {
		case op < 80 && len(keys) > 0:
			keys = append(keys, keys[len(keys)-1-op%len(keys)])
		case op < 160:
			keys = append(keys, d.num(op))
		case op < 200:
			keys = append(keys, d.ends[op%len(d.ends)])
		case op < 240:
			keys = append(keys, d.bits(c.uint64()))
		default:
			from, step := int(c.byte())*16, op-239
			for i := range int(c.byte()) {
				keys = append(keys, d.num(from+i*step))
			}
		}
	}
	return keys
}

// fuzzTypes has a fuzzed build for each type of key.
var fuzzTypes = []func(*testing.T, *cursor){
	fuzzKeyType(integers[uint64]()), fuzzKeyType(integers[uint32]()),
	fuzzKeyType(float64s[float64]()), fuzzKeyType(float32s[float32]()),
	fuzzKeyType(integers[int64]()), fuzzKeyType(integers[int32]()),
	fuzzKeyType(integers[uint8]()), fuzzKeyType(integers[int8]()),
	fuzzKeyType(integers[uint16]()), fuzzKeyType(integers[int16]()),
	fuzzKeyType(integers[int]()), fuzzKeyType(integers[uint]()), fuzzKeyType(integers[uintptr]()),
	fuzzKeyType(texts[string]()),
}

func fuzzKeyType[K pando.Key](d domain[K]) func(*testing.T, *cursor) {
	return func(t *testing.T, c *cursor) {
		switch c.byte() % 3 {
		case 0:
			fuzzBuild(t, c, d, uint64Values)
		case 1:
			fuzzBuild(t, c, d, uint32Values)
		case 2:
			fuzzBuild(t, c, d, stringValues)
		}
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

func fuzzBuild[K pando.Key, V any](t *testing.T, c *cursor, d domain[K], v values[V]) {
	o := int(c.byte())
	layout := pando.LayoutKind(o % 7) // one too many
	opts := []pando.Option{
		pando.Layout(layout), pando.Workers(o / 7 % 4), pando.HugePages(pando.PageMode(o / 28 % 3)),
	}
	keys := fuzzKeys(c, d, int(c.byte())+256*int(c.byte()&15))
	vals := make([]V, len(keys))
	for i := range vals {
		vals[i] = v.of(i)
	}
	ix, err := pando.Freeze(keys, vals, opts...)
	if layout != pando.AutoLayout && layout != pando.Implicit && !slices.Contains(layouts[K](v), layout) {
		if !errors.Is(err, pando.ErrLayout) {
			t.Fatalf("%v: %v", layout, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	m := newModel(keys, vals, v.same)
	asked := append(fuzzKeys(c, d, 300), d.ends...)
	if err := checkIndex(ix, m, asked); err != nil {
		t.Fatalf("%v of %d keys: %v", layout, len(keys), err)
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
			vals[i] = uint64Values.of(i)
		}
		m := newModel(k, vals, uint64Values.same)
		asks := append(strings.Split(asked, string([]byte{separator})), k[:min(len(k), 100)]...)
		for _, layout := range layouts[string](uint64Values) {
			ix := mustFreeze(t, k, vals, pando.Layout(layout))
			if err := checkIndex(ix, m, asks); err != nil {
				t.Fatalf("%v: %v", layout, err)
			}
			ix.Close()
		}
	})
}
