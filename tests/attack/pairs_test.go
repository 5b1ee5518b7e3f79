package attack

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// typed is a pair of types, with what can be done to indexes of them.
type typed interface {
	answers(c *testCase) error
	faults(c *testCase) error
	files(c *testCase) error
	closing(c *testCase) error
	trees(c *testCase) error
	writers(c *testCase) error
}

// pair is a type of keys and one of values: how keys and values come about, and
// how values get into a file.
type pair[K pando.Key, V any] struct {
	keys  facetest.Domain[K]
	vals  facetest.Values[V]
	near  func(rng *rand.Rand, k K) K // a key next to another, or close to it
	sets  func(rng *rand.Rand) []facetest.KeySet[K]
	codec []pando.Option // none where values have no pointers
}

// name returns the types, for notes.
func (p pair[K, V]) name() string {
	return fmt.Sprintf("%v to %v", reflect.TypeFor[K](), reflect.TypeFor[V]())
}

// isText reports whether keys are strings.
func (p pair[K, V]) isText() bool { return facetest.CodeBytes[K]() == 0 }

// big is a value of many bytes without pointers.
type big struct {
	A uint64
	B [40]byte
}

var (
	bigValues = facetest.Equals(0, func(i int) big { return big{A: uint64(i), B: [40]byte{0: byte(i), 39: byte(i >> 8)}} })

	longValues = facetest.Values[[]byte]{
		Of:   anyLength,
		Same: bytes.Equal,
	}

	stringCodec = []pando.Option{pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) { return string(b), nil },
	)}
	pointerCodec = []pando.Option{pando.Values(
		func(dst []byte, v *int) []byte { return strconv.AppendInt(dst, int64(*v), 10) },
		func(b []byte) (*int, error) { n, err := strconv.Atoi(string(b)); return &n, err },
	)}
	sliceCodec = []pando.Option{pando.Values(
		func(dst []byte, v []byte) []byte { return append(dst, v...) },
		func(b []byte) ([]byte, error) { return b, nil },
	)}
)

// anyLength returns random bytes of any length, short ones most often: a tree has them in a
// word, in slots, or in pages of their own. A torn value is no value's.
func anyLength(i int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i), 0))
	n := rng.IntN(10)
	switch at := rng.IntN(500); {
	case at == 0:
		n = 33_000 + rng.IntN(10_000)
	case at < 5:
		n = rng.IntN(5000)
	case at < 250:
		n = rng.IntN(100)
	}
	b := make([]byte, n)
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	return b
}

// pairs has each kind of key and each kind of value where code differs: numbers by width
// and sign, strings, a named type of either; values beside their keys, in a column, in
// rows, in Go memory, none. Below the face there are no types, so that more pairs would
// find nothing else, and each takes two seconds to compile.
var pairs = []typed{
	integers[uint64](facetest.Uint64Values), integers[int64](facetest.PointerValues, pointerCodec...),
	integers[facetest.ID](facetest.EmptyValues), integers[int8](facetest.Uint32Values),
	float64s[float64](facetest.StringValues, stringCodec...), float32s[float32](bigValues),
	texts[string](facetest.Uint64Values), texts[facetest.Label](longValues, sliceCodec...),
}

// crowded is a pair of types, with what goroutines do to trees of them.
type crowded interface {
	shutting(c *testCase) error
	moments(c *testCase) error
	slow(c *testCase) error
}

type crowd[K pando.Key, V any] struct{ pair[K, V] }

// crowds are some of the pairs: to compile for all of them takes longer, and what
// goroutines meet depends on where values lie and how large keys are alone.
var crowds = []crowded{
	crowdOf[uint64, uint64](), crowdOf[int64, *int](), crowdOf[float32, big](), crowdOf[string, uint64](), crowdOf[facetest.Label, []byte](),
}

func crowdOf[K pando.Key, V any]() crowded {
	for _, p := range pairs {
		if p, ok := p.(pair[K, V]); ok {
			return crowd[K, V]{p}
		}
	}
	panic("no such pair")
}

func integers[K ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr, V any](v facetest.Values[V], codec ...pando.Option) typed {
	return newPair(facetest.Integers[K](), v, codec, func(rng *rand.Rand, k K) K { return k + K(rng.IntN(7)) - 3 }, nil)
}

func float64s[K ~float64, V any](v facetest.Values[V], codec ...pando.Option) typed {
	return newPair(facetest.Float64s[K](), v, codec, func(rng *rand.Rand, k K) K {
		return K(math.Nextafter(float64(k), pick(rng, math.Inf(1), math.Inf(-1), 0)))
	}, nil)
}

func float32s[K ~float32, V any](v facetest.Values[V], codec ...pando.Option) typed {
	return newPair(facetest.Float32s[K](), v, codec, func(rng *rand.Rand, k K) K {
		return K(math.Nextafter32(float32(k), float32(pick(rng, math.Inf(1), math.Inf(-1), 0))))
	}, nil)
}

func texts[K ~string, V any](v facetest.Values[V], codec ...pando.Option) typed {
	return newPair(facetest.Strings[K](), v, codec, nearText[K], textSets[K])
}

func newPair[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], codec []pando.Option, near func(*rand.Rand, K) K,
	more func(*rand.Rand) []facetest.KeySet[K]) typed {
	return pair[K, V]{keys: d, vals: v, near: near, codec: codec, sets: func(rng *rand.Rand) []facetest.KeySet[K] {
		sets := append(facetest.KeySets(d, rng), clusters(d, near, rng))
		if more != nil {
			sets = append(sets, more(rng)...)
		}
		return append(sets, mixed(sets, rng))
	}}
}

// clusters are keys close to a few.
func clusters[K pando.Key](d facetest.Domain[K], near func(*rand.Rand, K) K, rng *rand.Rand) facetest.KeySet[K] {
	centres := append([]K{d.Bits(rng.Uint64()), d.Bits(rng.Uint64()), d.Num(rng.IntN(5000))}, d.Ends[rng.IntN(len(d.Ends))])
	return facetest.KeySet[K]{Name: "clusters", Key: func(int, int) K {
		k := pick(rng, centres...)
		for range rng.IntN(5) {
			k = near(rng, k)
		}
		return k
	}}
}

// mixed are keys of all sets.
func mixed[K pando.Key](sets []facetest.KeySet[K], rng *rand.Rand) facetest.KeySet[K] {
	return facetest.KeySet[K]{Name: "mixed", Key: func(i, n int) K { return pick(rng, sets...).Key(i, n) }}
}

// nearText returns a string that is a little longer, shorter, or other.
func nearText[K ~string](rng *rand.Rand, k K) K {
	switch n := len(k); {
	case n == 0 || oneIn(rng, 3):
		return k + K(pick(rng, "\x00", "\xff", "a", "\x00\x00\x00\x00\x00\x00\x00\x00"))
	case oneIn(rng, 2):
		return k[:n-1]
	default:
		b := []byte(k)
		b[rng.IntN(n)] += byte(1 + rng.IntN(255))
		return K(b)
	}
}

// textSets are strings as they come, and such that share what they begin with.
func textSets[K ~string](rng *rand.Rand) []facetest.KeySet[K] {
	prefix := strings.Repeat(pick(rng, "a", "\x00", "\xff", "common/"), 1+upTo(rng, 300))
	deep := facetest.AnyBytes(rng, 40)
	return []facetest.KeySet[K]{
		{Name: "URLs", Key: func(i, _ int) K { return K(facetest.AURL(rng, i)) }},
		{Name: "UUIDs", Key: func(i, _ int) K { return K(facetest.AUUID(rng, i)) }},
		{Name: "phone numbers", Key: func(i, _ int) K { return K(facetest.APhone(rng, i)) }},
		{Name: "long prefix", Key: func(i, _ int) K { return K(prefix + facetest.BytesOf(rng, rng.IntN(6), "\x00\x01ab\xff")) }},
		{Name: "prefixes of each other", Key: func(i, _ int) K { return K(deep[:rng.IntN(len(deep)+1)]) }},
		{Name: "any bytes", Key: func(i, _ int) K { return K(facetest.AnyBytes(rng, upTo(rng, 200))) }},
		{Name: "zeros", Key: func(i, _ int) K { return K(make([]byte, rng.IntN(70))) }},
		{Name: "decimal", Key: func(i, _ int) K { return K(fmt.Sprint(i)) }},
	}
}
