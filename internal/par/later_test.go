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
			l    Later
			left atomic.Int32
			runs int
		)
		sweep := func() bool {
			runs++
			return left.Add(-1) > 0
		}
		for _, n := range []int{1, 3} {
			runs = 0
			left.Store(int32(n))
			for range 5 {
				l.Do(time.Millisecond, sweep)
			}
			if !l.Due() || runs != 0 {
				t.Fatalf("due %t after %d runs", l.Due(), runs)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if runs != n || l.Due() {
				t.Errorf("%d runs where there is to do for %d, due %t", runs, n, l.Due())
			}
		}
	})
}
