package pando_test

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// BenchmarkRange iterates over few and over many entries, and over the same
// entries by Rank and At; experiment range-iter of the bench module has peers
// beside them.
func BenchmarkRange(b *testing.B) {
	const n = 100_000
	numbers, words := make([]uint64, n), make([]string, n)
	for i := range n {
		numbers[i], words[i] = uint64(i)*3, fmt.Sprintf("word-%08d", i*3)
	}
	b.Run("numbers", func(b *testing.B) { benchmarkRanges(b, facetest.MustFreeze(b, numbers, numbers), numbers) })
	b.Run("strings", func(b *testing.B) { benchmarkRanges(b, facetest.MustFreeze(b, words, numbers), words) })
	tree, err := pando.TreeOf(numbers, numbers)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("tree", func(b *testing.B) { benchmarkRanges(b, tree, numbers) })
}

func benchmarkRanges[K pando.Key](b *testing.B, ix pando.Index[K, uint64], keys []K) {
	defer ix.Close()
	sum := uint64(0)
	for _, entries := range []int{1, 10, 100, 1000} {
		at := func(i int) int { return i * 7919 % (len(keys) - entries) }
		b.Run(fmt.Sprintf("%d/Range", entries), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				lo := at(i)
				for _, v := range ix.Range(keys[lo], keys[lo+entries-1]) {
					sum += v
				}
			}
		})
		b.Run(fmt.Sprintf("%d/RankAt", entries), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := ix.Rank(keys[at(i)])
				for j := range entries {
					_, v := ix.At(r + j)
					sum += v
				}
			}
		})
	}
}
