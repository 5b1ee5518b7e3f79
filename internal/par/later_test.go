package par

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What is asked for is done once, however many ask, and again while there is more.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			l          Later
			left, runs atomic.Int32
		)
		sweep := func() bool {
			runs.Add(1)
			return left.Add(-1) > 0
		}
		for _, n := range []int32{1, 3} {
			runs.Store(0)
			left.Store(n)
			for range 5 {
				l.Do(time.Millisecond, sweep)
			}
			if !l.Due() || runs.Load() != 0 {
				t.Fatalf("due %t after %d runs", l.Due(), runs.Load())
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if runs.Load() != n || l.Due() {
				t.Errorf("%d runs where there is to do for %d, due %t", runs.Load(), n, l.Due())
			}
		}
	})
}
