package pando_test

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Merge, Intersect and Difference are what a look at every entry says, and so
// are the indexes made of them.
func TestSetsOfIndexes(t *testing.T) {
	t.Run("numbers", setsOf(facetest.Integers[int32](), facetest.Uint64Values))
	t.Run("floats", setsOf(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("strings", setsOf(facetest.Strings[string](), facetest.Uint64Values))
}

type entry[K pando.Key, V comparable] struct {
	key K
	val V
}

func setsOf[K pando.Key, V comparable](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		for _, sizes := range [][2]int{{0, 0}, {0, 50}, {50, 0}, {1, 1}, {300, 300}, {20_000, 30}, {30, 20_000}, {20_000, 30_000}} {
			a, x := someIndex(t, d, v, sizes[0], rng)
			b, y := someIndex(t, d, v, sizes[1], rng)
			in := map[K]bool{}
			for _, e := range y {
				in[e.key] = true
			}
			has := func(e entry[K, V]) bool {
				return in[e.key] || e.key != e.key && slices.ContainsFunc(y, func(o entry[K, V]) bool { return o.key != o.key })
			}
			merged := slices.Concat(x, y)
			slices.SortStableFunc(merged, func(a, b entry[K, V]) int { return cmp.Compare(a.key, b.key) })
			shared, others := []entry[K, V]{}, []entry[K, V]{}
			for _, e := range x {
				if has(e) {
					shared = append(shared, e)
				} else {
					others = append(others, e)
				}
			}
			checkSet(t, "Merge", pando.Merge(a, b), merged)
			checkSet(t, "Intersect", pando.Intersect(a, b), shared)
			checkSet(t, "Difference", pando.Difference(a, b), others)
			for name, c := range map[string]struct {
				freeze func(...pando.Option) (*pando.Frozen[K, V], error)
				want   []entry[K, V]
			}{
				"FreezeMerge":        {func(o ...pando.Option) (*pando.Frozen[K, V], error) { return pando.FreezeMerge(a, b, o...) }, merged},
				"FreezeIntersection": {func(o ...pando.Option) (*pando.Frozen[K, V], error) { return pando.FreezeIntersection(a, b, o...) }, shared},
				"FreezeDifference":   {func(o ...pando.Option) (*pando.Frozen[K, V], error) { return pando.FreezeDifference(a, b, o...) }, others},
			} {
				ix, err := c.freeze(pando.Workers(3))
				if err != nil {
					t.Fatal(err)
				}
				checkSet(t, name, ix.All(), c.want)
				ix.Close()
			}
			a.Close()
			b.Close()
		}
	}
}

// someIndex returns an index of n entries with equal keys among them, or a tree
// without, and its entries in order.
func someIndex[K pando.Key, V comparable](t *testing.T, d facetest.Domain[K], v facetest.Values[V], n int, rng *rand.Rand) (pando.Index[K, V], []entry[K, V]) {
	keys, vals := make([]K, n), make([]V, n)
	for i := range keys {
		if keys[i], vals[i] = d.Num(rng.IntN(3*n)), v.Of(rng.Int()); rng.IntN(50) == 0 {
			keys[i] = d.Ends[rng.IntN(len(d.Ends))]
		}
	}
	var ix pando.Index[K, V] = facetest.MustFreeze(t, keys, vals)
	if facetest.CodeBytes[K]() > 0 && rng.IntN(2) == 0 {
		ix.Close()
		tree, err := pando.TreeOf(keys, vals)
		if err != nil {
			t.Fatal(err)
		}
		ix = tree
	}
	var all []entry[K, V]
	for k, v := range ix.All() {
		all = append(all, entry[K, V]{k, v})
	}
	return ix, all
}

func checkSet[K pando.Key, V comparable](t *testing.T, name string, s iter.Seq2[K, V], want []entry[K, V]) {
	t.Helper()
	i := 0
	for k, v := range s {
		if i >= len(want) || cmp.Compare(k, want[i].key) != 0 || v != want[i].val {
			t.Fatalf("%s: entry %d is %v, %v", name, i, k, v)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%s: %d entries, want %d", name, i, len(want))
	}
	for range s { // stopped at once
		break
	}
}
