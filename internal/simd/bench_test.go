package simd

import (
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// BenchmarkSearch searches a tree that fits the nearest caches, so it measures
// the instructions, not the memory.
func BenchmarkSearch(b *testing.B) {
	for _, p := range Paths() {
		b.Run(p.String(), func(b *testing.B) {
			defer Use(p)()
			b.Run("32", benchSearch[uint32])
			b.Run("64", benchSearch[uint64])
		})
	}
}

func benchSearch[C Code](b *testing.B) {
	rng := seed.Rand(b)
	tree := makeTree(form{levels: 2, top: 1, pairs: true}, named[C]("random", rng))
	tree.Distance = 16
	keys := asked(tree, 1024, rng)
	ranks, vals, found := make([]int, len(keys)), make([]C, len(keys)), make([]bool, len(keys))
	b.Run("Rank", func(b *testing.B) {
		perKey(b, len(keys), func() { Rank(&tree.Tree, keys, ranks) })
	})
	b.Run("Find", func(b *testing.B) {
		perKey(b, len(keys), func() { Find(&tree.Tree, keys, ranks) })
	})
	b.Run("GetPairs", func(b *testing.B) {
		perKey(b, len(keys), func() { GetPairs(&tree.Tree, keys, vals, found) })
	})
	b.Run("Seek", func(b *testing.B) {
		perKey(b, len(keys), func() {
			for i, k := range keys {
				ranks[i], found[i] = Seek(&tree.Tree, k)
			}
		})
	})
}

func perKey(b *testing.B, keys int, run func()) {
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/key")
}
