package pandoserver

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Lookups that come while one is under way are one batch, whose parts everybody gets; one that fails is told to all.
func TestGatherer(t *testing.T) {
	var mu sync.Mutex
	var sizes []int
	broken := false
	enter, leave := make(chan struct{}, 100), make(chan struct{})
	g := NewGatherer(func(keys []string, vals [][]byte, found []bool) (hits int) {
		enter <- struct{}{}
		<-leave
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(keys))
		if broken {
			panic("broken")
		}
		for i, k := range keys {
			if found[i] = k != "no"; found[i] {
				vals[i] = []byte("value of " + k)
				hits++
			}
		}
		return hits
	})
	ask := func(keys ...string) (problem string) {
		defer func() {
			if v := recover(); v != nil {
				problem = fmt.Sprint(v)
			}
		}()
		vals, found := make([][]byte, len(keys)), make([]bool, len(keys))
		want := 0
		hits := g.GetBatch(keys, vals, found)
		for i, k := range keys {
			switch {
			case found[i] != (k != "no"), found[i] && string(vals[i]) != "value of "+k:
				return fmt.Sprintf("%s: %v, %q", k, found[i], vals[i])
			case found[i]:
				want++
			}
		}
		if hits != want {
			return fmt.Sprintf("%q: %d were there", keys, hits)
		}
		return ""
	}
	waiting := func(n int) {
		t.Helper()
		for range 6000 {
			g.mu.Lock()
			got := len(g.waiting)
			g.mu.Unlock()
			if got == n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("there are not %d who wait", n)
	}
	for _, breaks := range []bool{false, true} {
		broken, sizes = breaks, nil
		var all sync.WaitGroup
		said := make(chan string, 20)
		begin := func(keys ...string) { all.Go(func() { said <- ask(keys...) }) }
		begin("first")
		<-enter
		for i := range 9 {
			begin(fmt.Sprint("a", i), "no", fmt.Sprint("b", i))
		}
		waiting(9)
		leave <- struct{}{} // the first
		<-enter
		waiting(0)
		many := make([]string, gatherEnough)
		begin(many...) // does not wait for others
		<-enter
		close(leave)
		all.Wait()
		close(said)
		n := 0
		for s := range said {
			if n++; breaks != (s == "broken") && s != "" || breaks && s == "" {
				t.Errorf("broken %v: %q", breaks, s)
			}
		}
		if g.busy || len(g.waiting) > 0 || n != 11 {
			t.Errorf("%d were answered; busy: %v", n, g.busy)
		}
		if !breaks && (len(sizes) != 3 || sizes[0] != 1 || sizes[1]+sizes[2] != 27+gatherEnough) {
			t.Errorf("batches of %v", sizes)
		}
		for len(enter) > 0 {
			<-enter
		}
		leave = make(chan struct{})
	}
}

// A batch is bounded: who does not fit into it is part of the next.
func TestGathererBounds(t *testing.T) {
	enter, leave := make(chan struct{}, 100), make(chan struct{}, 100)
	var mu sync.Mutex
	most := 0
	g := NewGatherer(func(keys []string, _ [][]byte, _ []bool) int {
		mu.Lock()
		most = max(most, len(keys))
		mu.Unlock()
		enter <- struct{}{}
		<-leave
		return 0
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			keys := make([]string, gatherEnough-1)
			g.GetBatch(keys, make([][]byte, len(keys)), make([]bool, len(keys)))
		})
	}
	<-enter
	for range 100 {
		leave <- struct{}{}
	}
	all.Wait()
	if most > gatherMost {
		t.Errorf("%d at once", most)
	}
}
