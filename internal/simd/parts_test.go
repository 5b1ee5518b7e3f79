package simd

import (
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

func TestSearchInPartsEqualsTheWhole(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, inParts[uint32], inParts[uint64])
	})
}

// inParts cuts searches at every two levels and checks their final results.
func inParts[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, f := range forms() {
		tree := makeTree(f, named[C]("mixed", rng))
		tree.Distance = uint64(1 + rng.IntN(20))
		keys := asked(tree, longest, rng)
		want := answers(tree, keys)
		for _, n := range []int{0, 1, 7, longest} {
			for first := range f.levels + 1 {
				for second := first; second <= f.levels; second++ {
					checkParts(t, tree, keys[:n], want[:n], first, second)
				}
			}
		}
	}
}

func checkParts[C Code](t *testing.T, tree *handmade[C], keys []C, want []answer[C], first, second int) {
	t.Helper()
	places := make([]int, len(keys))
	for _, step := range [][2]int{{0, first}, {first, second}} {
		part := tree.Part(step[0], step[1])
		Descend(&part, keys, places)
	}
	rest := tree.Part(second, tree.Levels)
	ranks, finds := append([]int(nil), places...), append([]int(nil), places...)
	Rank(&rest, keys, ranks)
	Find(&rest, keys, finds)
	vals := make([]C, len(keys))
	for i, p := range places {
		vals[i] = C(p)
	}
	if tree.pairs {
		GetPairs(&rest, keys, vals, nil)
	}
	for i, w := range want {
		if ranks[i] != w.rank || finds[i] != w.place || tree.pairs && vals[i] != w.val {
			t.Fatalf("cut at levels %d and %d of %d: key %d has rank %d, is at %d with value %d; want %d, %d, %d",
				first, second, tree.Levels, keys[i], ranks[i], finds[i], vals[i], w.rank, w.place, w.val)
		}
	}
}

func TestCopyEqualsCopy(t *testing.T) {
	rng := seed.Rand(t)
	eachPath(t, func(t *testing.T) {
		for range 300 {
			src, dst := make([]byte, 2000), make([]byte, 2000)
			for i := range src {
				src[i], dst[i] = byte(rng.Uint32()), 0xee
			}
			n, at, from := rng.IntN(1800), rng.IntN(100), rng.IntN(100)
			Copy(dst[at:at+n], src[from:from+n])
			for i, b := range dst {
				want := byte(0xee)
				if i >= at && i < at+n {
					want = src[from+i-at]
				}
				if b != want {
					t.Fatalf("%d bytes from %d to %d: byte %d is %d, want %d", n, from, at, i, b, want)
				}
			}
		}
	})
}
