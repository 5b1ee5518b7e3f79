package index_test

import (
	"testing"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/seed"
)

// The first offset that cannot be is found, wherever it is and whatever is
// wrong behind it.
func TestBadOffset(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{1, 2, 1000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
		offsets := make([]int32, n)
		for i := range offsets {
			offsets[i] = int32(i / 2)
		}
		size := n / 2
		if at := index.BadOffset(size, offsets, 1+rng.IntN(4)); at != -1 {
			t.Fatalf("%d offsets: %d is bad", n, at)
		}
		for range 20 {
			bad := rng.IntN(n)
			old := offsets[bad]
			for _, v := range []int32{-1, int32(size) + 1, -1 << 31, 1<<31 - 1} {
				offsets[bad] = v
				if at := index.BadOffset(size, offsets, 1+rng.IntN(4)); at != bad {
					t.Fatalf("%d offsets, number %d is %d: found %d", n, bad, v, at)
				}
			}
			offsets[bad] = old
		}
	}
}
