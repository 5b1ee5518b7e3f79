package fast

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// borderSizes lists 0, 1, and the borders of leaves, lines and pages up to
// three levels of lines.
func borderSizes(per int) []int {
	out := []int{0, 1, 2, 3}
	for n := per; n <= per*per*per*per; n *= per {
		out = append(out, n-1, n, n+1, 2*n, 2*n+1)
	}
	return out
}

// hardKeys returns sets of n sorted keys that try to break something.
func hardKeys[C simd.Code](n int, rng *rand.Rand) map[string][]C {
	kinds := map[string]func(i int) C{
		"random":       func(int) C { return C(rng.Uint64()) },
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

// rankIn is the simplest thing that could be right.
func rankIn[C simd.Code](sorted []C, key C) int {
	rank, _ := slices.BinarySearch(sorted, key)
	return rank
}

// buildPaged makes a tree of keys alone.
func buildPaged[C simd.Code](t testing.TB, keys []C, geo blocked.Geometry) *blocked.Tree[C] {
	t.Helper()
	tree, err := blocked.Build(layout.Source[C]{Len: len(keys), Codes: keys}, blocked.Config{Geometry: geo})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestStepsRankAsTheTree(t *testing.T) {
	t.Run("32 bits", stepsRank[uint32])
	t.Run("64 bits", stepsRank[uint64])
}

// stepsRank asks every way to rank for the same keys.
func stepsRank[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	per := keysInLine[C]()
	l := bits.Len(uint(per)) - 1
	for _, n := range borderSizes(per) {
		for name, keys := range hardKeys[C](n, rng) {
			if n > 1000 && (name != "random" && rng.IntN(3) > 0 || !seed.Long()) {
				continue
			}
			asked := probesFor(keys, rng)
			ranks := make([]int, len(asked))
			check := func(what string) {
				t.Helper()
				for i, key := range asked {
					if want := rankIn(keys, key); ranks[i] != want {
						t.Fatalf("%s, %d keys %s: rank of %d is %d, want %d", what, n, name, key, ranks[i], want)
					}
					ranks[i] = -7
				}
			}
			RankBinary(keys, asked, ranks)
			check("binary")
			for _, levels := range []int{1, 3, 10} {
				NewPageTree(keys, levels).Rank(asked, ranks)
				check(fmt.Sprint("pages of ", levels))
			}
			geo := blocked.Geometry{K: 1, P: l * (1 + rng.IntN(3))}
			heaps := buildPaged(t, keys, geo)
			RankLines(heaps, asked, ranks)
			check("lines")
			heaps.Release()
			for _, path := range simd.Paths() {
				undo := simd.Use(path)
				geo.K = 2
				tree := buildPaged(t, keys, geo)
				RankLevels(tree, 1+rng.IntN(40), asked, ranks)
				check("levels")
				if narrow, ok := any(tree).(*blocked.Tree[uint32]); ok {
					for _, how := range []Narrow{ByTable, ByCount} {
						RankSSE(narrow, how, 1+rng.IntN(20), any(asked).([]uint32), ranks)
						check(fmt.Sprint("by ", how))
					}
				}
				tree.Release()
				undo()
			}
		}
	}
}

func TestStepsRefuseOtherTrees(t *testing.T) {
	keys, vals := []uint32{1, 2, 3}, []uint32{4, 5, 6}
	pairs, err := blocked.Build(
		layout.Source[uint32]{Len: 3, Codes: keys, Vals: unsafe.Pointer(&vals[0])},
		blocked.Config{Config: implicit.Config{Leaves: implicit.Pairs, ValSize: 4}, Geometry: blocked.Geometry{K: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tree := range map[string]*blocked.Tree[uint32]{"K = 4": buildPaged(t, keys, blocked.Geometry{}), "pairs": pairs} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a tree of %s is searched as one of K = 2 with keys alone", name)
				}
			}()
			RankSSE(tree, ByTable, 8, []uint32{1}, make([]int, 1))
		}()
		tree.Release()
	}
}
