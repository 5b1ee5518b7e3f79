package fast

import (
	"slices"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

func TestSortedRanksAsTheTree(t *testing.T) {
	t.Run("32 bits", sortedRanks[uint32])
	t.Run("64 bits", sortedRanks[uint64])
}

func sortedRanks[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 100, 5000} {
		for name, keys := range hardKeys[C](n, rng) {
			tree, err := implicit.Build(layout.Source[C]{Len: n, Codes: keys}, implicit.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s := NewSorted[C](tree, 1+rng.IntN(4))
			for _, asked := range [][]C{nil, {1}, probesFor(keys, rng), keys} {
				if err := sameRanks(s, tree, asked); err != "" {
					t.Errorf("%d keys %s, %d asked: %s", n, name, len(asked), err)
				}
			}
			tree.Release()
		}
	}
}

// sameRanks returns what is wrong with a batch, in words.
func sameRanks[C simd.Code](a, b Ranker[C], asked []C) string {
	before := slices.Clone(asked)
	got, want := make([]int, len(asked)+1), make([]int, len(asked)+1)
	got[len(asked)], want[len(asked)] = -7, -7
	a.Rank(asked, got)
	b.Rank(asked, want)
	switch {
	case !slices.Equal(before, asked):
		return "the keys asked for have changed"
	case !slices.Equal(got, want):
		return "other ranks"
	}
	return ""
}

// Batches of several portions, and several at a time.
func TestSortedInPortions(t *testing.T) {
	rng := seed.Rand(t)
	keys := hardKeys[uint32](5000, rng)["random"]
	tree, err := implicit.Build(layout.Source[uint32]{Len: len(keys), Codes: keys}, implicit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	asked := make([]uint32, maxPortion+3*sortBucket+1)
	for i := range asked {
		asked[i] = rng.Uint32()
	}
	s := NewSorted[uint32](tree, 2)
	var wg sync.WaitGroup
	for _, n := range []int{len(asked), sortBucket, 2*sortBucket + 1} {
		wg.Go(func() {
			if err := sameRanks(s, tree, asked[:n]); err != "" {
				t.Errorf("%d asked: %s", n, err)
			}
		})
	}
	wg.Wait()
}

func TestPortions(t *testing.T) {
	for _, c := range []struct{ n, workers, want int }{
		{1, 1, 1}, {1, 4, 1}, {10, 4, 3}, {maxPortion, 1, maxPortion}, {maxPortion + 1, 1, maxPortion/2 + 1},
		{maxPortion, 2, maxPortion / 2}, {3 * maxPortion, 2, 3 * maxPortion / 4},
	} {
		if got := portionOf(c.n, c.workers); got != c.want {
			t.Errorf("%d queries for %d workers: portions of %d, want %d", c.n, c.workers, got, c.want)
		}
	}
}
