package cuart

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// hotBatch returns n operations, most of them on few keys, of which some share a
// slot: that of a key ends behind 64 bytes.
func hotBatch(r *rig, rng *rand.Rand, n int) (keys []string, vals []uint64, kinds []op.Kind) {
	few := make([]string, 1+rng.IntN(4))
	for i := range few {
		few[i] = cuarttest.RandomKey(rng, rng.IntN(7))
		if rng.IntN(2) == 0 {
			few[i] = strings.Repeat("hot", 30) + fmt.Sprint(i)
		}
	}
	gets, cold, long := rng.IntN(5), rng.IntN(3), 1+rng.IntN(200)
	key := few[0]
	for range n {
		if rng.IntN(long) == 0 {
			key = few[rng.IntN(len(few))]
		}
		k := key
		if rng.IntN(10) < cold {
			k = cuarttest.RandomKey(rng, rng.IntN(7))
		}
		kind := op.Kind(op.Get)
		if rng.IntN(4) >= gets { // none, some, or all of them
			kind = op.Set + op.Kind(rng.IntN(2))
		}
		keys, vals, kinds = append(keys, k), append(vals, r.value(rng)), append(kinds, kind)
	}
	return keys, vals, kinds
}

// A million operations on one key are answered in their order, though not one after
// the other.
func TestHotKeys(t *testing.T) {
	first := seed.Of(t)
	by := 0
	for i := range uint64(seed.Count(12)) {
		rng := rand.New(rand.NewPCG(first+i, 6))
		dev := ptx.New(ptx.Seed(first + i))
		r := newRig(t, dev, Options{ValBits: 32 + 32*int(i%2), Room: 64 << 20, Seed: 1})
		for range 3 {
			n := 60 + rng.IntN(300)
			if rng.IntN(4) == 0 {
				n = 9000 // more blocks than a warp looks at
			}
			keys, vals, kinds := hotBatch(r, rng, n)
			r.apply(keys, vals, kinds, rng.IntN(5))
		}
		by += r.tree.runs
		must(t, r.tree.Close())
		must(t, dev.Close())
	}
	if by == 0 {
		t.Error("no batch was done by runs")
	}
}

// Keys that are too long stay left out where there are many operations on them.
func TestHotKeysTooLong(t *testing.T) {
	dev := ptx.New()
	r := newRig(t, dev, Options{Room: 64 << 20, Seed: 1, Longest: 10})
	n := 300
	keys, vals, kinds := make([]string, n), make([]uint64, n), make([]op.Kind, n)
	for i := range keys {
		keys[i], kinds[i] = "this is too long", op.Set
	}
	ops := &Ops{Keys: r.pack(keys, 0), Vals: r.put(r.column(vals)), Kind: op.Set, Old: r.put(make([]byte, 8*n)), Had: r.put(make([]byte, n))}
	must(t, r.tree.Apply(ops))
	must(t, r.tree.copyOut(arena.Bytes(kinds), ops.Had))
	for i, had := range kinds {
		if had != 0 {
			t.Fatalf("operation %d has found a key that is too long", i)
		}
	}
	if r.tree.Len() != 0 || r.tree.runs != 1 || kernel.RadixRunBlocks(n) != 2 {
		t.Errorf("%d entries, %d batches by runs", r.tree.Len(), r.tree.runs)
	}
	r.done()
	must(t, r.tree.Close())
	must(t, dev.Close())
}
