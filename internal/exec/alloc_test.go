package exec

import (
	"testing"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// still is a layout that does nothing, so that only the schedule is measured.
type still struct{}

func (still) Rank([]uint64, []int)                    {}
func (still) Find([]uint64, []int)                    {}
func (still) GetPairs([]uint64, []uint64, []bool) int { return 0 }
func (still) Take(int, []int) int                     { return 0 }

// keysAndRoom returns a batch of n keys with slices for its results.
func keysAndRoom(n int) ([]int64, []int, []uint64) {
	return make([]int64, n), make([]int, n), make([]uint64, n)
}

func TestBatchesAllocateNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	var sink Sink = still{}
	for _, workers := range []int{1, 2} {
		e := NewCPU(still{}, 10, workers)
		for _, n := range []int{1, 100, 20_000} {
			keys, ranks, vals := keysAndRoom(n)
			allocs := testing.AllocsPerRun(50, func() {
				e.Rank(order.KeysOf(keys), ranks)
				e.RankAfter(order.KeysOf(keys), ranks)
				e.FindEach(order.KeysOf(keys), sink)
				e.GetPairs(order.KeysOf(keys), vals, nil)
			})
			if allocs >= 1 {
				t.Errorf("%d workers, batch of %d: %v allocations", workers, n, allocs)
			}
		}
	}
}

func BenchmarkSchedule(b *testing.B) {
	e := NewCPU(still{}, 10, 2)
	for _, size := range []struct {
		name string
		n    int
	}{{"small", 16}, {"shared", 20_000}} {
		b.Run(size.name, func(b *testing.B) {
			keys, ranks, _ := keysAndRoom(size.n)
			b.ReportAllocs()
			for b.Loop() {
				e.Rank(order.KeysOf(keys), ranks)
			}
		})
	}
}
