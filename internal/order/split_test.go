package order

import (
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/seed"
)

// Buckets, one behind the other, are what Sort returns.
func TestSplitIsSort(t *testing.T) {
	t.Run("32", splitIsSort[uint32])
	t.Run("64", splitIsSort[uint64])
}

func splitIsSort[C Code](t *testing.T) {
	rng := seed.Rand(t)
	const n = 3*soloMax + 17
	for name, key := range map[string]func(i int) C{
		"random":     func(int) C { return C(rng.Uint64()) },
		"few":        func(int) C { return C(rng.Uint64N(5)) },
		"equal":      func(int) C { return 7 },
		"one bucket": func(i int) C { return C(rng.Uint64N(1<<20)) | C(i/(n-1))<<31 },
		"low half":   func(int) C { return ^C(0)>>1 + C(rng.Uint64N(1<<16)) },
	} {
		codes, payload := make([]C, n), make([]uint64, n)
		for i := range codes {
			codes[i], payload[i] = key(i), uint64(i)
		}
		wantCodes, wantPayload := Sort(slices.Clone(codes), make([]C, n), slices.Clone(payload), make([]uint64, n), 1)
		for _, room := range []int{0, 1000} {
			for _, workers := range []int{1, 3} {
				b := Split(make([]C, n), make([]uint64, n), room, func(lo, hi int, c []C, p []uint64) ([]C, []uint64) {
					if room == 0 {
						return codes[lo:hi], payload[lo:hi]
					}
					copy(c, codes[lo:hi])
					copy(p, payload[lo:hi])
					return c[:hi-lo], p[:hi-lo]
				}, workers)
				parts := make([]pairs[C, uint64], b.Len())
				par.Run(workers, b.Len(), par.Func(func(i int) {
					b.Sorted(i, func(c []C, p []uint64) { parts[i] = pairs[C, uint64]{slices.Clone(c), slices.Clone(p)} })
				}))
				at := 0
				for i, p := range parts {
					end := at + len(p.codes)
					if end > n || !slices.Equal(p.codes, wantCodes[at:end]) || !slices.Equal(p.payload, wantPayload[at:end]) {
						t.Fatalf("%s, room %d, %d workers: bucket %d of %d is not what Sort has there", name, room, workers, i, len(parts))
					}
					at = end
				}
				if at != n {
					t.Fatalf("%s, room %d, %d workers: %d pairs of %d are in buckets", name, room, workers, at, n)
				}
			}
		}
	}
}
