package files_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// word is the width of an int on this machine, as a file says it.
var word = strconv.Itoa(strconv.IntSize)

// An index that was saved and opened answers every question as the one it was
// made of. What is below the face of an index has no types, so here are all kinds of
// keys and of values, and not each with each: to compile all questions for a pair of
// types takes most of a second. Other tests of this package have the same pairs.
func TestFileEveryKind(t *testing.T) {
	roundTrips(t,
		wholePair(facetest.Integers[uint64](), facetest.Uint64Values, "uint64", "uint64"),
		wholePair(facetest.Integers[int32](), facetest.Uint32Values, "int32", "uint32"),
		wholePair(facetest.Float32s[float32](), facetest.PointerValues, "float32", "encoded *int"+word, pointerCodec),
		wholePair(facetest.Strings[string](), facetest.StringValues, "string", "encoded string", stringCodec),
	)
}

// For every other type of key, and every other type of value, the entries come back:
// with values as wide as a key's code, wider and narrower ones, rows, none, and such
// that are encoded.
func TestFileEveryType(t *testing.T) {
	roundTrips(t,
		thinPair(facetest.Integers[int](), facetest.FloatValues, "int"+word, "float64"),
		thinPair(facetest.Integers[int8](), facetest.Uint32Values, "int8", "uint32"),
		thinPair(facetest.Integers[int16](), facetest.EmptyValues, "int16", "none"),
		thinPair(facetest.Integers[int32](), facetest.RecordValues, "int32", "struct{int32,int32}"),
		thinPair(facetest.Integers[int64](), facetest.StringValues, "int64", "encoded string", stringCodec),
		thinPair(facetest.Integers[uint](), facetest.RecordValues, "uint"+word, "struct{int32,int32}"),
		thinPair(facetest.Integers[uint8](), facetest.BoolValues, "uint8", "bool"),
		thinPair(facetest.Integers[uint16](), readingValues, "uint16", "struct{uint32,float32,[3]uint8}"),
		thinPair(facetest.Integers[uint32](), facetest.Uint64Values, "uint32", "uint64"),
		thinPair(facetest.Integers[uint64](), facetest.SliceValues, "uint64", "encoded []uint8", sliceCodec),
		thinPair(facetest.Integers[uintptr](), facetest.BytesValues, "uint"+word, "[8]uint8"),
		thinPair(facetest.Float32s[float32](), facetest.Int32Values, "float32", "int32"),
		thinPair(facetest.Float64s[float64](), facetest.Uint32Values, "float64", "uint32"),
		thinPair(facetest.Float64s[facetest.Celsius](), facetest.Uint64Values, "float64", "uint64"),
		thinPair(facetest.Strings[string](), facetest.Uint64Values, "string", "uint64"),
		thinPair(facetest.Strings[facetest.Label](), facetest.TriplesValues, "string", "[3]uint16"),
	)
}

// pair is a pair of types, for code that has none.
type pair struct {
	key, value string // as a file calls them
	layouts    []pando.LayoutKind
	sizes      func(pando.LayoutKind) []int
	opts       []pando.Option
	fill       func(n int, rng *rand.Rand) content
}

// content is what an index of some types is made of.
type content struct {
	what string
	made func(path string, opts ...pando.Option) (frozen, error) // of a file, or without a path by Freeze
}

// frozen is an index without its types.
type frozen struct {
	file
	check func() error // compares it with what it was made of
}

type file interface {
	Save(path string) error
	WriteTo(io.Writer) (int64, error)
	Close() error
}

// wholePair is a pair whose indexes are asked all questions.
func wholePair[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], key, value string, opts ...pando.Option) pair {
	p := thinPair(d, v, key, value, opts...)
	p.fill = func(n int, rng *rand.Rand) content {
		keys, what := drawKeys(d, n, rng)
		m := facetest.NewModel(keys, valuesOf(v, n), v.Same)
		return contentOf(what, keys, valuesOf(v, n), func(ix *pando.Frozen[K, V]) error {
			return facetest.CheckIndex(ix, m, facetest.Probes(m, d, 40, rng))
		})
	}
	return p
}

// thinPair is one whose indexes are asked for their entries.
func thinPair[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], key, value string, opts ...pando.Option) pair {
	return pair{key, value, facetest.Layouts[K](v), facetest.Sizes[K], opts, func(n int, rng *rand.Rand) content {
		keys, what := drawKeys(d, n, rng)
		return thinContent(what, keys, valuesOf(v, n), v.Same)
	}}
}

// drawKeys draws keys of one of the sets, and returns what they are.
func drawKeys[K pando.Key](d facetest.Domain[K], n int, rng *rand.Rand) (keys []K, what string) {
	sets := facetest.KeySets(d, rng)
	set := sets[rng.IntN(len(sets))]
	for i := range n {
		keys = append(keys, set.Key(i, n))
	}
	return keys, fmt.Sprintf("%d keys %s", n, set.Name)
}

func valuesOf[V any](v facetest.Values[V], n int) (vals []V) {
	for i := range n {
		vals = append(vals, v.Of(i))
	}
	return vals
}

func contentOf[K pando.Key, V any](what string, keys []K, vals []V, check func(*pando.Frozen[K, V]) error) content {
	return content{what, func(path string, opts ...pando.Option) (frozen, error) {
		var ix *pando.Frozen[K, V]
		var err error
		if path == "" {
			ix, err = pando.Freeze(keys, vals, opts...)
		} else {
			ix, err = pando.Open[K, V](path, opts...)
		}
		return frozen{ix, func() error { return check(ix) }}, err
	}}
}

// thinContent has its entries compared, by number and by key, and nothing else.
func thinContent[K pando.Key, V any](what string, keys []K, vals []V, same func(a, b V) bool) content {
	rows, first := ordered(keys)
	return contentOf(what, keys, vals, func(ix *pando.Frozen[K, V]) error {
		if ix.Len() != len(rows) {
			return fmt.Errorf("%d entries, want %d", ix.Len(), len(rows))
		}
		for i, row := range rows {
			if k, v := ix.At(i); cmp.Compare(k, keys[row]) != 0 || fmt.Sprint(k) == "-0" || !same(v, vals[row]) {
				return fmt.Errorf("entry %d is %v, %v", i, k, v)
			}
			if v, ok := ix.Get(keys[row]); !ok || !same(v, vals[first[i]]) {
				return fmt.Errorf("Get(%v) = %v, %v", keys[row], v, ok)
			}
		}
		return nil
	})
}

// ordered returns the rows of keys in their order, and for each the first row that
// has the same key.
func ordered[K pando.Key](keys []K) (rows, first []int) {
	for i := range keys {
		rows = append(rows, i)
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	for i, row := range rows {
		if i > 0 && cmp.Compare(keys[row], keys[rows[i-1]]) == 0 {
			row = first[i-1]
		}
		first = append(first, row)
	}
	return rows, first
}

// roundTrips saves and opens indexes of all sizes and layouts, each with one
// of the key sets.
func roundTrips(t *testing.T, pairs ...pair) {
	for _, p := range pairs {
		t.Run(p.key+" "+p.value, func(t *testing.T) {
			rng := seed.Rand(t)
			path := filepath.Join(t.TempDir(), "index")
			for _, layout := range p.layouts {
				sizes := p.sizes(layout)
				if !seed.Long() { // each takes as long as a disk
					rng.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
					sizes = sizes[:min(2, len(sizes))]
				}
				for _, n := range sizes {
					if seed.Long() && layout > pando.Apart && n > 3 && rng.IntN(5) > 0 {
						continue
					}
					c := p.fill(n, rng)
					opts := append(facetest.Options(layout, p.layouts[0], rng), pando.Layout(layout))
					err := roundTrip(path, c, append(opts, p.opts...))
					if err == nil {
						err = described(path, p.key, p.value, layout, n)
					}
					if err != nil {
						t.Fatalf("%v, %s: %v", layout, c.what, err)
					}
				}
			}
		})
	}
}

// roundTrip goes through two generations of files and compares both with what
// they were made of, and the bytes with each other.
func roundTrip(path string, c content, opts []pando.Option) error {
	ix, err := c.made("", opts...)
	if err != nil {
		return err
	}
	defer ix.Close()
	var first []byte
	for generation := range 2 {
		data, err := written(ix, path)
		if err != nil {
			return fmt.Errorf("generation %d: %w", generation, err)
		}
		opened, err := c.made(path, append(opts, pando.Verified())...)
		if err != nil {
			return fmt.Errorf("generation %d: %w", generation, err)
		}
		defer opened.Close()
		if err := opened.check(); err != nil {
			return fmt.Errorf("generation %d: %w", generation, err)
		}
		if generation == 1 && !bytes.Equal(data, first) {
			return errors.New("the index of a file is saved as another file")
		}
		first, ix = data, opened
	}
	return pando.Verify(path)
}

// written writes an index in both ways and returns the bytes.
func written(ix frozen, path string) ([]byte, error) {
	var b bytes.Buffer
	n, err := ix.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		return nil, fmt.Errorf("WriteTo = %d, %v; %d bytes came", n, err, b.Len())
	}
	if err := ix.Save(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(data, b.Bytes()) {
		err = errors.New("Save and WriteTo differ")
	}
	return data, err
}
