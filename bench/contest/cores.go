package contest

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// AllCores returns the number of threads of the CPU's rows.
func AllCores() int { return runtime.GOMAXPROCS(0) }

// DrawPiece is the number of queries drawn from one stream of random numbers,
// so that the queries do not depend on the number of cores.
const DrawPiece = 1 << 20

// ForPieces calls part for each piece of n numbers, on all cores.
func ForPieces(n int, part func(p, lo, hi int)) {
	pieces := (n + DrawPiece - 1) / DrawPiece
	Spread(min(AllCores(), pieces), pieces, func(first, end int) int {
		for p := first; p < end; p++ {
			part(p, p*DrawPiece, min((p+1)*DrawPiece, n))
		}
		return 0
	})
}

// OneAndAll returns 1 and the number of cores.
func OneAndAll() []int {
	if n := AllCores(); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

// AllThreads returns 1, 2, 4, ... up to the number of cores.
func AllThreads() []int {
	var out []int
	for t := 1; t < runtime.NumCPU(); t *= 2 {
		out = append(out, t)
	}
	return append(out, runtime.NumCPU())
}

// Spread cuts [0, n) into one part per thread and returns the sum of what the
// parts return. With one thread, the caller itself does the work.
func Spread(threads, n int, part func(lo, hi int) int) int {
	if threads <= 1 {
		return part(0, n)
	}
	var sum atomic.Int64
	var wg sync.WaitGroup
	for t := range threads {
		lo, hi := n*t/threads, n*(t+1)/threads
		wg.Go(func() { sum.Add(int64(part(lo, hi))) })
	}
	wg.Wait()
	return int(sum.Load())
}
