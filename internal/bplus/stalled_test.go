//go:build stalls

package bplus

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Many goroutines at once, each held up now and then between any two steps:
// sometimes long enough for all others to do much. PANDO_LONG=1800 goes on for
// an hour.
func TestManyGoroutinesStalled(t *testing.T) {
	hasty(t)
	defer simd.Use(simd.Go)()
	defer stall.Use(func(string) {
		switch n := rand.IntN(2000); {
		case n == 0:
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		case n < 8:
			time.Sleep(time.Microsecond)
		case n < 200:
			runtime.Gosched()
		}
	})()
	d := seed.Lasting(0, 2*time.Second)
	rng := seed.Rand(t)
	for round, end := 0, time.Now().Add(d); time.Now().Before(end) && !t.Failed(); round++ {
		atomic.StoreInt64(&generationsAtOnce, int64(1+round%2))
		stress(t, rng.Uint64(), []uint64{300, 3000, 1 << 40}[round%3], 4, 300*time.Millisecond)
	}
	atomic.StoreInt64(&generationsAtOnce, 1)
}
