package linearizable

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Close is under way for a while: operations beside it answer, or say that the
// tree is closed. One that says so comes after Close has begun, one that answers
// has begun before its end.
func TestClose(t *testing.T) {
	n := histories(200)
	t.Run("numbers", func(t *testing.T) { closing(t, numbers(farApart), n) })
	t.Run("rows", func(t *testing.T) { closing(t, rows(farApart), n/2) })
	t.Run("by strings", func(t *testing.T) { closing(t, keys(numbers(farApart), named, number), n) })
	t.Run("rows by strings", func(t *testing.T) { closing(t, keys(rows(farApart), named, number), n/2) })
	t.Run("in a radix tree", func(t *testing.T) {
		u := numbers(farApart)
		u.opts = []pando.Option{pando.Layout(pando.Radix)}
		closing(t, u, n/2)
	})
}

// patience is how long operations beside a Close may take before they count as
// such that never end.
const patience = 30 * time.Second

// mostBefore is the number of operations that a goroutine does if nobody
// closes the tree meanwhile.
const mostBefore = 40

// closing takes histories of trees that are closed, and judges them.
func closing[K pando.Key, V any](t *testing.T, u setup[K, V], n int) {
	holdUp(t)
	s := seed.Of(t)
	rng := rand.New(rand.NewPCG(s, 98))
	for i := range n {
		var err error
		if u.tree, err = pando.NewTree[K, V](append(u.opts, pando.Workers(2))...); err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(3000) {
			must(u.tree.Set(u.name(u.other(rng)), u.of(1)))
		}
		judge(t, closable(), u.untilClosed(t, s+uint64(i), rng))
	}
}

// untilClosed records what goroutines do until another has closed the tree, and
// one operation more of each.
func (u *setup[K, V]) untilClosed(t *testing.T, s uint64, rng *rand.Rand) (all []porcupine.Operation) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	over := make(chan struct{})
	keep := func(ops []porcupine.Operation) {
		mu.Lock()
		all = append(all, ops...)
		mu.Unlock()
	}
	const goroutines = 4
	for g := range goroutines {
		r := &recorder[K, V]{setup: u, id: g, rng: rand.New(rand.NewPCG(s, uint64(g)))}
		wg.Go(func() {
			for i := 0; i < mostBefore && !r.closed; i++ {
				r.any()
			}
			<-over
			r.any()
			keep(r.ops)
		})
	}
	for g := range 2 {
		wg.Go(func() { u.crowdUntilClosed(s + uint64(g)) })
	}
	pause := time.Duration(rng.IntN(300)) * time.Microsecond
	wg.Go(func() {
		for begun := time.Now(); time.Since(begun) < pause; {
			runtime.Gosched()
		}
		call := now()
		u.tree.Close()
		end := now()
		for _, name := range []string{"closing", "closed"} {
			keep([]porcupine.Operation{{ClientId: goroutines, Input: input{name: name}, Call: call, Output: output{}, Return: end}})
		}
		close(over)
	})
	ended(t, &wg)
	return all
}

// crowdUntilClosed is a crowd that works until the tree is closed.
func (u *setup[K, V]) crowdUntilClosed(s uint64) {
	defer func() {
		if v := recover(); v != nil && !facetest.ClosedText(fmt.Sprint(v)) {
			panic(v)
		}
	}()
	rng := rand.New(rand.NewPCG(s, 99))
	for {
		must(u.tree.Set(u.name(u.other(rng)), u.of(1)))
		u.tree.Delete(u.name(u.other(rng)))
	}
}

// ended waits for goroutines, and fails the test with their stacks if they never
// end.
func ended(t *testing.T, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		stacks := make([]byte, 64<<10)
		t.Fatalf("operations beside Close do not end\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}
