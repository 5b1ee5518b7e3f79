package par

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestRunDoesEveryPieceOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		for _, pieces := range []int{0, 1, 2, 7, 100} {
			done := make([]atomic.Int32, pieces)
			Run(workers, pieces, Func(func(i int) { done[i].Add(1) }))
			for i := range done {
				if n := done[i].Load(); n != 1 {
					t.Fatalf("workers %d, pieces %d: piece %d was done %d times", workers, pieces, i, n)
				}
			}
		}
	}
}

func TestRunRaisesPanicInCaller(t *testing.T) {
	for _, workers := range []int{1, 4} {
		func() {
			defer func() {
				if v := recover(); v != "piece 3" {
					t.Errorf("workers %d: recovered %v", workers, v)
				}
			}()
			Run(workers, 100, Func(func(i int) {
				if i == 3 {
					panic("piece 3")
				}
			}))
		}()
	}
	var sum atomic.Int64 // the crew that failed is used again
	Run(4, 10, Func(func(i int) { sum.Add(int64(i)) }))
	if sum.Load() != 45 {
		t.Errorf("after a panic: sum %d, want 45", sum.Load())
	}
}

type counter struct{ n atomic.Int64 }

func (c *counter) Do(int) { c.n.Add(1) }

func TestRunAllocatesNothing(t *testing.T) {
	c := new(counter)
	Run(2, 4, c)
	if a := testing.AllocsPerRun(100, func() { Run(2, 4, c) }); a >= 1 {
		t.Errorf("Run allocates %v times a call", a)
	}
}

// However many workers are asked for, they can be counted with.
func TestWorkersAreBounded(t *testing.T) {
	if n := Workers(math.MaxInt); n < 1 || n > max(mostWorkers, 2*runtime.GOMAXPROCS(0)) {
		t.Errorf("%d workers", n)
	}
	if Workers(0) < 1 || Workers(-5) < 1 || Workers(7) != 7 {
		t.Errorf("%d, %d, %d workers", Workers(0), Workers(-5), Workers(7))
	}
}
