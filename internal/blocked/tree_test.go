package blocked

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// sorted is the simplest thing that could be right: sorted keys, each with its
// place as value.
type sorted[C simd.Code] []C

func (m sorted[C]) rank(key C) int {
	return sort.Search(len(m), func(i int) bool { return m[i] >= key })
}

func (m sorted[C]) find(key C) int {
	if i := m.rank(key); i < len(m) && m[i] == key {
		return i
	}
	return -1
}

func valueAt[C simd.Code](place int) C { return C(place)*2654435761 + 12345 }

// configs returns every page depth, and every kind of leaves and of blocks
// at least once.
func configs[C simd.Code]() (out []Config) {
	size, l := keyBytes[C](), lineLevels[C]()
	leaves := []implicit.Config{
		{Leaves: implicit.Pairs, ValSize: size, Workers: 2},
		{ValSize: size, Workers: 1},
		{Pages: arena.HugeAll},
	}
	for k := 1; k <= 3; k++ {
		for i, under := range leaves {
			out = append(out, Config{under, Geometry{P: k * l, K: 1 + (k+i)%l}})
		}
	}
	return append(out, Config{Config: leaves[0]})
}

func build[C simd.Code](t testing.TB, keys []C, cfg Config) *Tree[C] {
	t.Helper()
	vals := make([]C, len(keys)+1)
	for i := range vals {
		vals[i] = valueAt[C](i)
	}
	src := layout.Source[C]{Len: len(keys), Codes: keys, Vals: unsafe.Pointer(&vals[0])}
	if len(keys)%2 == 1 { // the other way in
		src.Codes, src.Encode = nil, func(dst []C, lo int) { copy(dst, keys[lo:]) }
	}
	tree, err := Build(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Check(); err != nil {
		t.Fatalf("%d keys, %+v: %v", len(keys), cfg, err)
	}
	return tree
}

// borderSizes lists 0, 1, and the borders of leaves, lines and pages up to
// three levels of lines.
func borderSizes(perLeaf, fanout int) []int {
	out := []int{0, 1, 2, 3}
	for n := perLeaf; n <= perLeaf*fanout*fanout*fanout; n *= fanout {
		out = append(out, n-1, n, n+1, 2*n, 2*n+1)
	}
	return out
}

// hardKeys returns key sets of size n that try to break something.
func hardKeys[C simd.Code](n int, rng *rand.Rand) map[string][]C {
	kinds := map[string]func(i int) C{
		"random":       func(int) C { return C(rng.Uint64()) },
		"all zero":     func(int) C { return 0 },
		"all maximum":  func(int) C { return ^C(0) },
		"ends":         func(int) C { return C(rng.IntN(4)) - 2 }, // 0, 1 and the two greatest
		"few distinct": func(int) C { return C(rng.IntN(n/7+1)) * 10 },
		"dense":        func(i int) C { return C(i) },
	}
	sets := map[string][]C{}
	for name, key := range kinds {
		keys := make([]C, n)
		for i := range keys {
			keys[i] = key(i)
		}
		slices.Sort(keys)
		sets[name] = keys
	}
	return sets
}

// probesFor returns keys to ask for: hits, and misses before, between and after.
func probesFor[C simd.Code](keys []C, rng *rand.Rand) []C {
	out := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1}
	for range 250 + rng.IntN(100) {
		k := C(rng.Uint64())
		if len(keys) > 0 && rng.IntN(4) > 0 {
			k = keys[rng.IntN(len(keys))] + C(rng.IntN(3)) - 1
		}
		out = append(out, k)
	}
	return out
}

func TestAgainstSortedSlice(t *testing.T) {
	t.Run("32 bits", againstSorted[uint32])
	t.Run("64 bits", againstSorted[uint64])
}

func againstSorted[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs[C]() {
		per := keysInLine[C]()
		if cfg.Leaves == implicit.Pairs {
			per /= 2
		}
		for _, n := range borderSizes(per, keysInLine[C]()) {
			for name, keys := range hardKeys[C](n, rng) {
				if (!seed.Long() || n > 10_000) && rng.IntN(5) > 0 || !seed.Long() && n > 10_000 {
					continue // of the large ones, some
				}
				tree := build(t, keys, cfg)
				for _, path := range simd.Paths() {
					undo := simd.Use(path)
					if err := compare(tree, keys, probesFor(keys, rng)); err != nil {
						t.Fatalf("%v, %v, %v, %d keys %s: %v", path, cfg.Leaves, tree.Geometry(), n, name, err)
					}
					undo()
				}
				tree.Release()
			}
		}
	}
}

// compare asks everything about some keys, from the root and in parts.
func compare[C simd.Code](tree *Tree[C], keys sorted[C], asked []C) error {
	places := make([]int, len(asked))
	for from := range tree.Depth() + 1 {
		if err := compareFrom(tree, from, places, keys, asked); err != nil {
			return fmt.Errorf("from row %d of %d: %w", from, tree.Depth(), err)
		}
		if from < tree.Depth() {
			tree.Descend(from, from+1, asked, places)
		}
	}
	all := make([]int, len(asked))
	if tree.Descend(0, tree.Depth(), asked, all); !slices.Equal(all, places) {
		return errors.New("down at once is not down row by row")
	}
	for _, key := range asked[:min(len(asked), 100)] {
		want := keys.rank(key)
		if rank, equal := tree.Seek(key); rank != want || equal != (keys.find(key) >= 0) {
			return fmt.Errorf("Seek(%d) = %d, %v; want %d", key, rank, equal, want)
		}
	}
	return compareEntries(tree, keys)
}

// compareFrom asks about keys whose searches have come to a row.
func compareFrom[C simd.Code](tree *Tree[C], from int, places []int, keys sorted[C], asked []C) error {
	ranks, finds := slices.Clone(places), slices.Clone(places)
	tree.RankFrom(from, asked, ranks)
	tree.FindFrom(from, asked, finds)
	vals, found := make([]C, len(asked)), make([]bool, len(asked))
	hits := 0
	pairs := tree.leaves.Leaf() == implicit.Pairs
	if pairs {
		for i, p := range places {
			vals[i] = C(p)
		}
		hits = Paired[C]{tree}.GetPairsFrom(from, asked, vals, found)
	}
	for i, key := range asked {
		if want := keys.rank(key); ranks[i] != want {
			return fmt.Errorf("rank of %d is %d, want %d", key, ranks[i], want)
		}
		want := keys.find(key)
		if finds[i] != want {
			return fmt.Errorf("%d found at %d, want %d", key, finds[i], want)
		}
		wantVal := C(0)
		if want >= 0 && pairs {
			wantVal = valueAt[C](want)
			hits--
		}
		if pairs && (found[i] != (want >= 0) || vals[i] != wantVal) {
			return fmt.Errorf("GetPairs(%d) = %d, %v; want %d", key, vals[i], found[i], wantVal)
		}
	}
	if hits != 0 {
		return fmt.Errorf("%d hits too many counted", hits)
	}
	return nil
}

func compareEntries[C simd.Code](tree *Tree[C], keys []C) error {
	size := tree.leaves.Stats().ValueBytes > 0 || tree.leaves.Leaf() == implicit.Pairs
	for lo := 0; lo <= len(keys); lo += 1 + 2*lo {
		gotKeys, gotVals := make([]C, len(keys)-lo), make([]C, len(keys)-lo)
		tree.CopyKeys(gotKeys, lo)
		if size && lo < len(keys) {
			tree.CopyVals(arena.Bytes(gotVals), lo)
		}
		tree.Prefetch(lo, len(gotKeys))
		for i, k := range gotKeys {
			if k != keys[lo+i] || tree.Key(lo+i) != k {
				return fmt.Errorf("key %d is %d, %d; want %d", lo+i, k, tree.Key(lo+i), keys[lo+i])
			}
			if size && (gotVals[i] != valueAt[C](lo+i) || *(*C)(tree.Val(lo + i)) != gotVals[i]) {
				return fmt.Errorf("value %d is %d", lo+i, gotVals[i])
			}
		}
	}
	return nil
}
