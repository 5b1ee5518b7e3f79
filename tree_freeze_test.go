package pando_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// TestTreeFreezeIsFreezeOfItsPairs compares a Freeze of a tree that writers go on
// to change with what the tree had: codes that the index holds as the tree does,
// narrower ones, and values of all sizes.
func TestTreeFreezeIsFreezeOfItsPairs(t *testing.T) {
	t.Run("uint64 uint64", func(t *testing.T) {
		freezeLive(t, func(i uint64) uint64 { return i }, func(i uint64) uint64 { return i })
	})
	t.Run("int64 uint32", func(t *testing.T) {
		freezeLive(t, func(i uint64) int64 { return int64(i) }, func(i uint64) uint32 { return uint32(i) })
	})
	t.Run("uint64 none", func(t *testing.T) {
		freezeLive(t, func(i uint64) uint64 { return i }, func(uint64) struct{} { return struct{}{} })
	})
	t.Run("float64 string", func(t *testing.T) {
		freezeLive(t, func(i uint64) float64 { return float64(int32(i)) }, func(i uint64) string { return fmt.Sprint(i % 1000) })
	})
	t.Run("uint32 uint32", func(t *testing.T) {
		freezeLive(t, func(i uint64) uint32 { return uint32(i) }, func(i uint64) uint32 { return ^uint32(i) })
	})
	t.Run("int32 uint64", func(t *testing.T) {
		freezeLive(t, func(i uint64) int32 { return int32(i) }, func(i uint64) uint64 { return i })
	})
}

func freezeLive[K pando.Key, V comparable](t *testing.T, key func(uint64) K, val func(uint64) V) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, n := range []int{0, 1, 255, 5000, seed.Size(70_000, 200_000)} {
		tree, err := pando.NewTree[K, V]()
		if err != nil {
			t.Fatal(err)
		}
		keys, vals := make([]K, n), make([]V, n)
		for i := range keys {
			x := rng.Uint64()
			keys[i], vals[i] = key(x), val(x)
		}
		if err := tree.SetBatch(keys, vals); err != nil {
			t.Fatal(err)
		}
		kinds := []pando.LayoutKind{pando.AutoLayout, pando.Apart, pando.Compressed, pando.Radix}
		if n > 5000 && !seed.Long() {
			kinds = []pando.LayoutKind{pando.AutoLayout, kinds[1+rng.IntN(3)]}
		}
		for _, kind := range kinds {
			freezeAs(t, tree, rng.Uint64(), key, val, kind)
		}
		tree.Close()
	}
}

// freezeAs freezes a tree into a layout, and compares it with a snapshot that was
// taken before, while nobody wrote. A writer goes on from then on.
func freezeAs[K pando.Key, V comparable](t *testing.T, tree *pando.Tree[K, V], seed uint64, key func(uint64) K, val func(uint64) V, kind pando.LayoutKind) {
	snapshot := tree.Snapshot()
	defer snapshot.Close()
	frozen, err := tree.Freeze(pando.Layout(kind))
	if err != nil {
		t.Fatal(kind, err)
	}
	defer frozen.Close()
	var wait sync.WaitGroup
	wait.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 2000 {
			x := rng.Uint64()
			if err := tree.Set(key(x), val(x)); err != nil {
				t.Error(err)
			}
		}
	})
	during, err := tree.Freeze(pando.Layout(kind))
	if err != nil {
		t.Fatal(kind, err)
	}
	wait.Wait()
	defer during.Close()
	if got, want := frozen.Len(), snapshot.Len(); got != want {
		t.Fatalf("%v: %d entries frozen of %d", kind, got, want)
	}
	i := 0
	for k, v := range snapshot.All() {
		if gk, gv := frozen.At(i); gk != k || gv != v {
			t.Fatalf("%v: entry %d is %v: %v, want %v: %v", kind, i, gk, gv, k, v)
		}
		if _, ok := during.Get(k); !ok {
			t.Fatalf("%v: key %v is not in the Freeze beside a writer", kind, k)
		}
		i++
	}
}
