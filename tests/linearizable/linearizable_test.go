// Package linearizable records what many goroutines do to a Tree at once, and
// has porcupine judge whether it could have been done one after the other.
//
// What is not one operation by its own promise is noted as several: a batch and
// DeleteRange as one for each key, where operations of one batch on one key are
// one change; an iteration as a Ceil, or a Floor, for each step. A snapshot is all
// keys at one moment.
//
// PANDO_LONG=1 takes ten times as many histories, and PANDO_LONG=10 ten times those.
package linearizable

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// histories returns how many histories to take, of a number for long runs. Builds that
// make goroutines meet take more.
func histories(long int) int {
	if seed.RaceDetector || stall.On {
		return seed.Times(long/5, long)
	}
	return seed.Times(max(1, long/16), long)
}

// history records what goroutines do at once.
func (u *setup[K, V]) history(s uint64, goroutines, ops int) (all []porcupine.Operation) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range goroutines {
		r := &recorder[K, V]{setup: u, id: g, rng: rand.New(rand.NewPCG(s, uint64(g)))}
		wg.Go(func() {
			for range ops {
				r.any()
			}
			r.readHeld()
			mu.Lock()
			all = append(all, r.ops...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// clear deletes the keys.
func (u *setup[K, V]) clear() {
	for k := range uint64(most) {
		u.tree.Delete(u.name(u.base + k*u.far))
	}
}

// crowd fills and empties the leaves around until stop is closed, so that they
// are split and merged.
func (u *setup[K, V]) crowd(s uint64, stop chan struct{}) {
	rng := rand.New(rand.NewPCG(s, 99))
	var keys []K
	for {
		for range 2000 {
			select {
			case <-stop:
				return
			default:
			}
			k := u.name(u.other(rng))
			keys = append(keys, k)
			u.tree.Set(k, u.of(1))
		}
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for len(keys) > 50 {
			select {
			case <-stop:
				return
			default:
			}
			u.tree.Delete(keys[len(keys)-1])
			keys = keys[:len(keys)-1]
		}
	}
}

// holdUp makes goroutines wait between the steps of the protocol, in builds with
// stalls.
func holdUp(t *testing.T) {
	if !stall.On {
		return
	}
	plain := simd.Use(simd.Go)
	undo := stall.Use(func(point string) {
		switch n := rand.IntN(300); {
		case n == 0:
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
		case n < 30:
			runtime.Gosched()
		}
	})
	t.Cleanup(func() { undo(); plain() })
}

// run takes histories of a tree and judges them.
func run[K pando.Key, V any](t *testing.T, u setup[K, V], n int) {
	holdUp(t)
	var err error
	if u.tree, err = pando.NewTree[K, V](append(u.opts, pando.Workers(2))...); err != nil {
		t.Fatal(err)
	}
	defer u.tree.Close()
	s := seed.Of(t)
	stop := make(chan struct{})
	var crowds sync.WaitGroup
	if u.other != nil {
		for i := range 2 { // nodes are changed by several besides those of the history
			crowds.Go(func() { u.crowd(s+uint64(i), stop) })
		}
	}
	defer func() { close(stop); crowds.Wait() }()
	goroutines, ops := 5, 12
	if u.whole {
		goroutines, ops = 4, 6
	}
	for i := range n {
		u.clear()
		judge(t, model(!u.whole), u.history(s+uint64(i), goroutines, ops))
	}
}

// every runs histories of every kind of tree.
func every(t *testing.T, n int, s shape) {
	t.Run("numbers", func(t *testing.T) { run(t, numbers(s), n) })
	t.Run("texts", func(t *testing.T) { run(t, texts(s), n/2) })
	t.Run("documents", func(t *testing.T) { run(t, documents(s), n/2) })
	t.Run("rows", func(t *testing.T) { run(t, rows(s), n/2) })
	t.Run("by strings", func(t *testing.T) { run(t, keys(numbers(s), named, number), n) })
	t.Run("texts by strings", func(t *testing.T) { run(t, keys(texts(s), named, number), n/2) })
	t.Run("documents by strings", func(t *testing.T) { run(t, keys(documents(s), named, number), n/2) })
	t.Run("rows by strings", func(t *testing.T) { run(t, keys(rows(s), named, number), n/2) })
	t.Run("in a radix tree", func(t *testing.T) {
		u := numbers(s)
		u.opts = []pando.Option{pando.Layout(pando.Radix)}
		run(t, u, n/2)
	})
}

func TestSingleKeys(t *testing.T) { every(t, histories(300), farApart) }

func TestSeveralKeys(t *testing.T) { every(t, histories(300), inTheMiddle) }

// Of the ends, PopMin takes the first key, or PopMax the last, or both do.
func TestPop(t *testing.T) {
	n := histories(120)
	t.Run("first", func(t *testing.T) { every(t, n, atTheStart) })
	t.Run("last", func(t *testing.T) { every(t, n, atTheEnd) })
	t.Run("both", func(t *testing.T) { every(t, n, alone) })
}

// The same where each batch, however small, goes to the interpreter in the place
// of a GPU.
func TestOnGPU(t *testing.T) {
	onDevice(t, pando.GPU(0))
	on := func(t *testing.T, u setup[string, uint64], n int) {
		indextest.Interpreted(t, 1)
		u.opts = []pando.Option{pando.On(pando.GPU(0))}
		run(t, u, n)
	}
	n := histories(10)
	t.Run("single strings", func(t *testing.T) { on(t, keys(numbers(farApart), named, number), n) })
	t.Run("several strings", func(t *testing.T) { on(t, keys(numbers(inTheMiddle), named, number), n) })
	t.Run("pop of strings", func(t *testing.T) { on(t, keys(numbers(atTheStart), named, number), n) })
}

// The same where inner nodes are mirrored there, which the tree leaves behind.
func TestOnHybrid(t *testing.T) { onDevice(t, pando.Hybrid(0)) }

func onDevice(t *testing.T, dev pando.Device) {
	on := func(t *testing.T, u setup[uint64, uint64], n int) {
		indextest.Interpreted(t, 1)
		u.opts = []pando.Option{pando.On(dev)}
		run(t, u, n)
	}
	n := histories(10)
	t.Run("single keys", func(t *testing.T) { on(t, numbers(farApart), n) })
	t.Run("several keys", func(t *testing.T) { on(t, numbers(inTheMiddle), n) })
	t.Run("pop", func(t *testing.T) { on(t, numbers(atTheStart), n) })
}

// judge fails a test if a history is not linearizable.
func judge(t *testing.T, m porcupine.Model, h []porcupine.Operation) {
	t.Helper()
	if res := porcupine.CheckOperationsTimeout(m, h, 20*time.Second); res != porcupine.Ok {
		for _, op := range h {
			t.Logf("%d: %d to %d: %s", op.ClientId, op.Call, op.Return, describe(op.Input, op.Output))
		}
		t.Fatalf("a history of %d operations: %v", len(h), res)
	}
}
