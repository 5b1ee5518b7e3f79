package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// end has a goroutine try to end generations, and reports how many of n have ended.
func end(c *Clock, n int) (ended int) {
	for range n {
		gen := c.Gen()
		if c.Advance(gen); c.Gen() != gen {
			ended++
		}
	}
	return ended
}

// A generation that is held stays current: one ends beside it, and the next when it is released.
// Readers that come later do not put that off.
func TestHoldGeneration(t *testing.T) {
	c := newClock()
	for round := range uint64(3) { // beginning with an even one, and with an odd one
		first := c.Hold()
		if c.Held() {
			t.Error("a generation may end beside one that is held")
		}
		if n := end(c, 3); n != 1 || !c.Current(first) || !c.Held() {
			t.Fatalf("%d generations end beside a reader, held: %t", n, c.Held())
		}
		second, third := c.Hold(), c.Hold()
		if n := end(c, 3); n != 0 || second != first+1 || third != second {
			t.Fatalf("%d generations end while %d is held", n, first)
		}
		c.Release(first)
		if n := end(c, 3); n != 1 || !c.Current(second) || c.Current(first) {
			t.Fatalf("%d generations end when the first reader is done", n)
		}
		c.Release(second)
		if n := end(c, 3); n != 0 || !c.Current(third) {
			t.Fatalf("%d generations end while one of two readers is not done", n)
		}
		c.Release(third)
		if n := end(c, 4+int(round)); n != 4+int(round) || c.Held() {
			t.Fatalf("%d generations end when nobody reads", n)
		}
	}
	gen := c.Hold()
	c.End()
	if c.Current(gen) {
		t.Error("a reader keeps a closed tree")
	}
	c.Release(gen)
	if gen := c.Hold(); c.Current(gen) {
		t.Error("a generation of a closed tree is current")
	}
}

// A reader whose tries take longer than two generations is done soon, and holds nothing then.
func TestPatience(t *testing.T) {
	c := newClock()
	var p Patience
	for range 3 {
		tries := 0
		for gen := p.Begin(c); ; gen = p.Begin(c) {
			if tries++; tries > MostTries+1 {
				t.Fatalf("a reader tries %d times", tries)
			}
			end(c, 2)
			if c.Current(gen) {
				break
			}
		}
		if tries != MostTries+1 {
			t.Errorf("a reader has held its generation at try %d", tries)
		}
		gen := p.Begin(c)
		if p.Done(); !c.Current(gen) {
			t.Error("another try has another generation")
		}
		if n := end(c, 5); n != 5 {
			t.Fatalf("%d generations end when the reader is done", n)
		}
	}
	p.Done() // nothing happens
	c.End()
	for range 2 * MostTries {
		p.Begin(c)
	}
	if p.Done(); c.Held() {
		t.Error("a closed tree is held")
	}
}

// However many readers hold generations at once and one after the other, each keeps its own, and
// generations end.
func TestHoldersBeside(t *testing.T) {
	c := newClock()
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				gen := c.Hold()
				if i%16 == 0 {
					time.Sleep(time.Microsecond)
				}
				current := c.Current(gen)
				c.Release(gen)
				if !current {
					t.Error("a generation that is held is not current")
					return
				}
			}
		})
	}
	limit := time.Now().Add(time.Minute)
	for range 2 {
		wg.Go(func() {
			for ended := 0; ended < seed.Size(100, 20_000) && time.Now().Before(limit); {
				n := end(c, 1)
				if ended += n; n == 0 {
					runtime.Gosched()
				}
			}
			stop.Store(true)
		})
	}
	wg.Wait()
	if time.Now().After(limit) {
		t.Error("generations do not end")
	}
	for _, n := range []int64{c.holders[0].Load(), c.holders[1].Load()} {
		if n != 0 {
			t.Errorf("%d readers hold a generation, and all are done", n)
		}
	}
}
