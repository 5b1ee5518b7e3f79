package order

import (
	"math"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// A single descent anywhere, within a piece, between pieces or between the
// buffers of SortedKeys, must be detected, and equal neighbors must not count
// as one.
func TestSortedSeesEveryDescent(t *testing.T) {
	const n = 3*checkPiece + 5
	keys := make([]int64, n)
	codes := make([]uint64, n)
	c := newCodec[int64, uint64]()
	for i := range keys {
		keys[i] = int64(i/2) - n/4
	}
	places := []int{1, 2, 511, 512, 513, 1024, n / 2, n - 2, n - 1}
	for d := -1; d <= 2; d++ {
		places = append(places, checkPiece+d, 2*checkPiece+d, 3*checkPiece+d)
	}
	for _, workers := range []int{1, 2, 8} {
		c.EncodeSlice(codes, keys)
		if !Sorted(codes, workers) || !sortedKeys(c, keys, workers) {
			t.Fatalf("workers %d: sorted keys found unsorted", workers)
		}
		for _, i := range places {
			old := keys[i]
			keys[i] = keys[i-1] - 1
			c.EncodeSlice(codes, keys)
			if Sorted(codes, workers) || sortedKeys(c, keys, workers) {
				t.Errorf("workers %d: descent at %d not seen", workers, i)
			}
			keys[i] = old
		}
	}
}

func TestSortedOfShortSlices(t *testing.T) {
	r := seed.Rand(t)
	c := newCodec[float32, uint32]()
	u := newCodec[uint32, uint32]()
	for n := range 600 {
		keys := make([]float32, n)
		for i := range keys {
			keys[i] = float32(r.IntN(n)) - float32(n)/2
			if r.IntN(10) == 0 {
				keys[i] = float32(math.NaN())
			}
		}
		checkSorted(t, c, keys)
		slices.Sort(keys)
		checkSorted(t, c, keys)
		codes := make([]uint32, n)
		checkSorted(t, u, c.EncodeSlice(codes, keys))
	}
}

func checkSorted[K Key, C Code](t *testing.T, c codec[K, C], keys []K) {
	t.Helper()
	want := slices.IsSorted(keys)
	codes := c.EncodeSlice(make([]C, len(keys)), keys)
	if got := Sorted(codes, 2); got != want {
		t.Errorf("Sorted of %d: %v, want %v", len(keys), got, want)
	}
	if got := sortedKeys(c, keys, 2); got != want {
		t.Errorf("SortedKeys of %d: %v, want %v", len(keys), got, want)
	}
}
