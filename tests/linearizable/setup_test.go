package linearizable

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/pando-index/pando"
)

// shape is where the keys of a history lie among others.
type shape struct {
	base  uint64 // key 0
	far   uint64 // distance of keys
	whole bool   // operations whose answer depends on several keys, too
	low   bool   // no other key is below
	high  bool   // no other key is above
	other func(rng *rand.Rand) uint64
}

var (
	farApart    = shape{far: 1000, other: between}
	inTheMiddle = shape{base: 50_000, far: 1, whole: true, other: around}
	atTheStart  = shape{base: 50_000, far: 1, whole: true, low: true, other: behind}
	atTheEnd    = shape{base: 50_000, far: 1, whole: true, high: true, other: ahead}
	alone       = shape{base: 50_000, far: 1, whole: true, low: true, high: true}
)

// between returns keys between those of a history, which lie 1000 apart.
func between(rng *rand.Rand) uint64 { return rng.Uint64N(most)*1000 + 1 + rng.Uint64N(999) }

// around returns keys on both sides of those of a history, behind only those
// above, ahead only those below.
func around(rng *rand.Rand) uint64 {
	if rng.IntN(2) == 0 {
		return ahead(rng)
	}
	return behind(rng)
}

func behind(rng *rand.Rand) uint64 { return 50_000 + most + rng.Uint64N(1000) }

func ahead(rng *rand.Rand) uint64 { return 50_000 - 1 - rng.Uint64N(1000) }

// setup is a tree, and how it is used.
type setup[K pando.Key, V any] struct {
	shape
	tree *pando.Tree[K, V]
	name func(uint64) K // key of a number, in the same order
	key1 func(K) uint64
	of   func(uint32) V // value of a number
	to   func(V) uint32
	opts []pando.Option

	// What vector operations do, nil where values are no numbers: the value of a
	// key by Aggregate, and n added to all from lo to hi, which returns how many.
	sum    func(t *pando.Tree[K, V], key K) (V, bool)
	change func(t *pando.Tree[K, V], lo, hi K, n uint32) (int, error)
}

// keys makes what has values a setup for keys.
func keys[K pando.Key, V any](u setup[uint64, V], name func(uint64) K, number func(K) uint64) setup[K, V] {
	return setup[K, V]{shape: u.shape, name: name, key1: number, of: u.of, to: u.to}
}

func same(n uint64) uint64 { return n }

// named returns a number as a string: some are long, and have much in common.
func named(n uint64) string { return fmt.Sprintf("a common prefix/%08d", n) }

func number(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "a common prefix/"), 10, 64)
	return n
}

func numbers(s shape) setup[uint64, uint64] {
	return setup[uint64, uint64]{shape: s, name: same, key1: same, of: func(n uint32) uint64 { return uint64(n) }, to: func(v uint64) uint32 { return uint32(v) },
		sum: func(t *pando.Tree[uint64, uint64], key uint64) (uint64, bool) {
			s := pando.Aggregate(t, key, key)
			return s.Sum, s.Count == 1
		},
		change: func(t *pando.Tree[uint64, uint64], lo, hi uint64, n uint32) (int, error) {
			return pando.Transform(t, lo, hi, pando.Add(uint64(n)))
		},
	}
}

func texts(s shape) setup[uint64, string] {
	return setup[uint64, string]{shape: s, name: same, key1: same, of: text, to: textOf}
}

// text returns a value of any length, whose parts must agree; a short one lies in the tree itself.
func text(n uint32) string { return strings.Repeat(strconv.Itoa(int(n))+"/", 1+int(n)%40*int(n%3)) }

func textOf(v string) uint32 {
	first, _, _ := strings.Cut(v, "/")
	n, _ := strconv.ParseUint(first, 10, 32)
	if v != "" && v != text(uint32(n)) {
		panic(fmt.Sprintf("parts of several values: %q", v))
	}
	return uint32(n)
}

// documents are texts as bytes, which are whoever's who gets them.
func documents(s shape) setup[uint64, []byte] {
	to := func(v []byte) uint32 {
		n := textOf(string(v))
		clear(v)
		return n
	}
	return setup[uint64, []byte]{shape: s, name: same, key1: same, of: func(n uint32) []byte { return []byte(text(n)) }, to: to}
}

// entry is a value that a tree keeps in memory of Go, whose parts must agree.
type entry struct {
	n    uint32
	next *uint32
	many [3]uint64
}

func rows(s shape) setup[uint64, entry] {
	of := func(n uint32) entry { return entry{n, &n, [3]uint64{2 * uint64(n), 3 * uint64(n), 4 * uint64(n)}} }
	to := func(v entry) uint32 {
		n := uint64(v.n)
		if v.next == nil || *v.next != v.n || v.many != [3]uint64{2 * n, 3 * n, 4 * n} {
			panic(fmt.Sprintf("parts of several values: %+v", v))
		}
		return v.n
	}
	return setup[uint64, entry]{shape: s, name: same, key1: same, of: of, to: to}
}
