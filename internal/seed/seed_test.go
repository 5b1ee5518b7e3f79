package seed

import (
	"strconv"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/stall"
)

// PANDO_SEED repeats a run, and without it no two are the same.
func TestOf(t *testing.T) {
	t.Setenv("PANDO_SEED", "7")
	if s := Of(t); s != 7 || Rand(t).Uint64() != Rand(t).Uint64() {
		t.Errorf("the seed is %d, and 7 was set", s)
	}
	t.Setenv("PANDO_SEED", "")
	if first := Of(t); Of(t) == first {
		t.Error("two runs have the same seed")
	}
}

// A quick run does less than a long one, and some of everything.
func TestTimes(t *testing.T) {
	t.Setenv("PANDO_SEEDS", "")
	least := 0
	if RaceDetector || stall.On {
		least = 20
	}
	for _, c := range []struct{ long, times, stride int }{{0, 3, 34}, {1, 20, 6}, {5, 100, 2}, {6, 120, 1}} {
		t.Setenv("PANDO_LONG", strconv.Itoa(c.long))
		if n, step := Times(3, 20), Stride(100, 3, 20); n != c.times || step != c.stride || Long() != (c.long > 0) {
			t.Errorf("PANDO_LONG=%d: %d times, a stride of %d, long %t", c.long, n, step, Long())
		}
		if d := Lasting(3*time.Second, 20*time.Second); d != time.Duration(max(c.times, least))*time.Second {
			t.Errorf("PANDO_LONG=%d: %v", c.long, d)
		}
		if n := Count(1); n != max(1, c.long) {
			t.Errorf("PANDO_LONG=%d: %d seeds of 1", c.long, n)
		}
	}
	t.Setenv("PANDO_SEEDS", "7")
	if n := Count(1); n != 7 {
		t.Errorf("%d seeds, 7 were asked for", n)
	}
}
