package blocked

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

func TestExperimentsRankAsTheTree(t *testing.T) {
	t.Run("32 bits", experimentsRank[uint32])
	t.Run("64 bits", experimentsRank[uint64])
}

// experimentsRank asks every way to rank for the same keys.
func experimentsRank[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	per, l := keysInLine[C](), lineLevels[C]()
	for _, n := range borderSizes(per, per) {
		for name, keys := range hardKeys[C](n, rng) {
			if n > 1000 && (name != "random" && rng.IntN(3) > 0 || testing.Short()) {
				continue
			}
			asked := probesFor(keys, rng)
			ranks := make([]int, len(asked))
			check := func(what string) {
				t.Helper()
				for i, key := range asked {
					if want := sorted[C](keys).rank(key); ranks[i] != want {
						t.Fatalf("%s, %d keys %s: rank of %d is %d, want %d", what, n, name, key, ranks[i], want)
					}
					ranks[i] = -7
				}
			}
			RankBinary(keys, asked, ranks)
			check("binary")
			for _, levels := range []int{1, 3, 10} {
				NewPaged(keys, levels).Rank(asked, ranks)
				check(fmt.Sprint("pages of ", levels))
			}
			geo := Geometry{K: 1, P: l * (1 + rng.IntN(3))}
			heaps := buildTree(t, keys, Config{Geometry: geo})
			RankLines(heaps, asked, ranks)
			check("lines")
			heaps.Release()
			for _, path := range simd.Paths() {
				undo := simd.Use(path)
				geo.K = 2
				tree := buildTree(t, keys, Config{Geometry: geo})
				tree.RankLevels(1+rng.IntN(40), asked, ranks)
				check("levels")
				if narrow, ok := any(tree).(*Tree[uint32]); ok {
					for _, how := range []simd.Narrow{simd.ByTable, simd.ByCount} {
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

func TestExperimentsRefuseOtherTrees(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a tree of K = 4 is searched as one of K = 2")
		}
	}()
	tree := buildTree(t, []uint32{1, 2, 3}, Config{Config: implicit.Config{}})
	RankSSE(tree, simd.ByTable, 8, []uint32{1}, make([]int, 1))
}
