package chunked

import (
	"errors"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// Whatever the size of a tree, there is memory for the sum over a table that is queued
// ahead, which has room for more chunks than a small batch makes, and over that of a
// flat merge of full leaves.
func TestSumsOfTables(t *testing.T) {
	tree := &Tree[uint64]{now: &table{}}
	for count := 1; count < 1<<20; count += 61 {
		tree.now.version.Count = uint32(count)
		leaves := (count*kernel.ChunkLeaves*kernel.LeafEntries + kernel.LeafFill - 1) / kernel.LeafFill
		flat := (leaves + kernel.ChunkFill - 1) / kernel.ChunkFill
		for _, n := range []int{1, 100, 5000} {
			if need, have := kernel.SumTemp(max(flat, tree.roomAhead())), device.Aligned(kernel.SumTemp(tree.longest(n))); need > have {
				t.Fatalf("%d operations on %d chunks: a sum takes %d bytes of %d", n, count, need, have)
			}
		}
	}
}

// A batch of deletes has no values, and nobody looks for any where a flat merge was
// in vain: then nothing is known of what operations do.
func TestCrowdedDeletes(t *testing.T) {
	dev := ptx.New(ptx.Seed(seed.Of(t)))
	r := newRig[uint64](t, dev, Options{Room: 16 << 20})
	r.tree.SetFlat(0)
	keys := between(0, 1000, 0)
	for range 2 { // the second finds what the first has left in the memory for batches
		r.apply(keys, keys, slices.Repeat([]op.Kind{op.Set}, len(keys)))
	}
	r.tree.crowded = 0
	n := len(keys)
	e := &Effects{Keys: r.put(arena.Bytes(keys)), Vals: r.put(arena.Bytes(keys)), Kinds: r.put(make([]uint8, n))}
	must(t, r.tree.Apply(&Ops{N: n, Keys: r.put(arena.Bytes(keys)), Kind: op.Delete, Effects: e}))
	if r.tree.Len() != 0 || e.N != n {
		t.Errorf("%d entries after %d deletes of %d", r.tree.Len(), e.N, n)
	}
	must(t, errors.Join(r.tree.Check(), dev.Failed(), r.tree.Close()))
}
