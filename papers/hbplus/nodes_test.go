package hbplus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// nodeFillings are ways to fill a node that try to break something.
func nodeFillings[C simd.Code](rng *rand.Rand) map[string]func(node []C) {
	top := ^C(0)
	choose := func(from ...C) func([]C) {
		return func(node []C) {
			for i := range node {
				node[i] = from[rng.IntN(len(from))]
			}
			slices.Sort(node)
		}
	}
	return map[string]func(node []C){
		"all zero": choose(0), "all maximum": choose(top), "all equal": choose(top / 3), "ends": choose(0, 1, top-1, top),
		"sign border": choose(top/2, top/2+1, top/2+2), "few": choose(10, 20, 30),
		"random": func(node []C) {
			for i := range node {
				node[i] = C(rng.Uint64())
			}
			slices.Sort(node)
		},
	}
}

// aroundOf returns keys equal or next to those of a node, and the ends.
func aroundOf[C simd.Code](node []C) []C {
	keys := []C{0, 1, ^C(0), ^C(0) - 1}
	for _, k := range node {
		keys = append(keys, k-1, k, k+1)
	}
	return keys
}

// All methods count the same in any node, with every key equal or next to every slot.
func TestCountLessAroundEverySlot(t *testing.T) {
	t.Run("32 bits", countLess[uint32])
	t.Run("64 bits", countLess[uint64])
}

func countLess[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	var c C
	node := make([]C, simd.LineBytes/unsafe.Sizeof(c))
	for name, fill := range nodeFillings[C](rng) {
		for range 20 {
			fill(node)
			for _, key := range aroundOf(node) {
				want, _ := slices.BinarySearch(node, key)
				for _, m := range Methods() {
					if got := CountLess(m, node, key); got != want {
						t.Errorf("%s, %v: CountLess(%d, %d) = %d, want %d", name, m, node, key, got, want)
					}
				}
			}
		}
	}
}

// Every method ranks as simd.Rank does, on every path, in trees of every shape, in
// batches of every length, and whatever sorted keys inner nodes have.
func TestMethodsRankAsTheTree(t *testing.T) {
	t.Run("32 bits", methodsRank[uint32])
	t.Run("64 bits", methodsRank[uint64])
}

func methodsRank[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	var c C
	slots := simd.LineBytes / int(unsafe.Sizeof(c))
	for _, leaves := range []implicit.Leaves{implicit.Apart, implicit.Pairs} {
		for _, fanout := range []int{slots, slots + 1} { // the hybrid tree's, and the CPU's
			for _, n := range []int{0, 1, slots, slots*slots + 1, 3 * slots * slots * slots} {
				cfg := implicit.Config{Leaves: leaves, Fanout: fanout}
				keys, vals := make([]C, n), make([]C, n+1)
				for i := range keys {
					keys[i] = C(rng.Uint64())
				}
				slices.Sort(keys)
				src := layout.Source[C]{Len: n, Codes: keys}
				if leaves == implicit.Pairs {
					cfg.ValSize, src.Vals = int(unsafe.Sizeof(c)), unsafe.Pointer(&vals[0])
				}
				tree, err := implicit.Build(src, cfg)
				if err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("%v, fanout %d, %d keys", leaves, fanout, n)
				asked := aroundOf(keys[:min(n, 60)])
				rng.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
				sameByAll(t, what, &tree.Tree, asked)
				inner := arena.As[C](tree.Segments()[0])[:int(tree.Leaves)*8/int(unsafe.Sizeof(c))]
				for name, fill := range nodeFillings[C](rng) { // nodes that do not fit together
					for at := 0; at < len(inner); at += slots {
						fill(inner[at : at+slots])
					}
					sameByAll(t, what+", "+name, &tree.Tree, asked)
				}
				tree.Release()
			}
		}
	}
}

// sameByAll ranks keys by every method on every path.
func sameByAll[C simd.Code](t *testing.T, what string, tree *simd.Tree, asked []C) {
	t.Helper()
	const untouched = -77
	want := make([]int, len(asked))
	simd.Rank(tree, asked, want)
	before := slices.Clone(asked)
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		for _, m := range Methods() {
			for _, n := range []int{0, 1, 2, 15, 16, 17, 33, 127, len(asked)} {
				n = min(n, len(asked))
				got := make([]int, n+1)
				got[n] = untouched
				RankBy(tree, m, asked[:n], got)
				if !slices.Equal(got[:n], want[:n]) || got[n] != untouched {
					t.Fatalf("%s, %v, %v, batch of %d: %d, want %d", what, path, m, n, got, want[:n])
				}
			}
		}
		undo()
	}
	if !slices.Equal(asked, before) {
		t.Fatalf("%s: the keys have changed", what)
	}
}

// Memory that is not in order leads nowhere outside the tree.
func TestMethodsStayInside(t *testing.T) {
	rng := seed.Rand(t)
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	tree, err := implicit.Build(layout.Source[uint64]{Len: len(keys), Codes: keys}, implicit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	for _, s := range tree.Segments() {
		for i, words := 0, arena.As[uint64](s); i < len(words); i++ {
			words[i] = rng.Uint64()
		}
	}
	asked, ranks := make([]uint64, 300), make([]int, 300)
	for i := range asked {
		asked[i] = rng.Uint64()
	}
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		for _, m := range Methods() {
			RankBy(&tree.Tree, m, asked, ranks)
			for _, r := range ranks {
				if r < 0 || r > len(keys) {
					t.Errorf("%v, %v: rank %d of %d", path, m, r, len(keys))
				}
			}
		}
		undo()
	}
}

// BenchmarkMethods searches a tree that fits the nearest caches, so it measures the
// instructions, not the memory.
func BenchmarkMethods(b *testing.B) {
	keys := make([]uint64, 500)
	rng := seed.Rand(b)
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	slices.Sort(keys)
	tree, err := implicit.Build(layout.Source[uint64]{Len: len(keys), Codes: keys}, implicit.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Release()
	ranks := make([]int, len(keys))
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, p := range simd.Paths() {
		for _, m := range Methods() {
			b.Run(fmt.Sprint(p, "/", m), func(b *testing.B) {
				defer simd.Use(p)()
				for b.Loop() {
					RankBy(&tree.Tree, m, keys, ranks)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
			})
		}
	}
}
