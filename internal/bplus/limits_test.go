package bplus

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// A tree that was closed leaves memory alone that another tree has by now, even
// if a writer comes late.
func TestClosedTreeFreesNothing(t *testing.T) {
	hasty(t)
	for _, late := range []struct {
		name string
		call func(*Tree[uint64])
	}{
		{"tidy", func(a *Tree[uint64]) { a.tidy(0) }},
		{"Retire", func(a *Tree[uint64]) { a.Retire([]uint64{1}, []uint64{0}) }},
	} {
		a, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		a.OnFree(func([]uint64) {})
		for k := range uint64(5000) {
			a.Set(k, k)
		}
		undo := epoch.SetPace(time.Hour) // what is retired stays retired
		for k := range uint64(4000) {
			a.Delete(k)
		}
		undo()
		a.Close()
		b, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[uint64]uint64{}
		for k := range uint64(50_000) {
			b.Set(k, k)
			model[k] = k
		}
		for range 3 {
			late.call(a)
		}
		if err := b.Check(); err != nil {
			t.Errorf("%s of another tree, closed: %v", late.name, err)
			continue
		}
		checkModel(t, b, model, seedless())
		b.Close()
	}
}

// A tree at its limit can be emptied by Pop from either end: to delete may not
// need memory.
func TestPopAtLimit(t *testing.T) {
	alone(t)
	rng := seed.Rand(t)
	leaves, uppers := pools[uint64]()
	for round := range 40 {
		limit := int64(rng.IntN(100)*leaves.SlotBytes() + rng.IntN(4*uppers.SlotBytes()) + leaves.SlotBytes())
		tree, err := New[uint64](limit)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for err = nil; err == nil; n++ {
			_, _, err = tree.Set(rng.Uint64(), 1)
		}
		if !errors.Is(err, op.ErrLimit) {
			t.Fatal(err)
		}
		var s *Snapshot[uint64]
		if round%4 < 2 {
			if s, err = tree.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		emptyByPop(t, tree, n-1, round%2 == 0)
		if s != nil {
			s.Close()
		}
		tree.Close()
	}
}

// emptyByPop deletes all entries of a tree, which has n.
func emptyByPop(t *testing.T, tree *Tree[uint64], n int, greatest bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for i := range n {
			if _, _, ok, err := tree.Pop(greatest); !ok || err != nil {
				done <- fmt.Errorf("after %d of %d: %t, %w", i, n, ok, err)
				return
			}
		}
		_, _, ok, err := tree.Pop(greatest)
		if ok {
			err = errors.New("there is one entry too many")
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("Pop does not end; %d entries, limit %d, %d bytes", tree.Len(), tree.limit.Load(), tree.Bytes())
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}

// Pop goes on while upper nodes have no memory, and so know too few leaves.
func TestPopWithoutUpperNodes(t *testing.T) {
	for _, greatest := range []bool{false, true} {
		tree, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		_, uppers := pools[uint64]()
		uppers.Deny(func() bool { return true })
		t.Cleanup(func() { uppers.Deny(nil) })
		for k := range uint64(2000) {
			if _, _, err := tree.Set(k, k); err != nil {
				t.Fatal(err)
			}
		}
		emptyByPop(t, tree, 2000, greatest)
		uppers.Deny(nil)
		tree.Close()
	}
}

// A batch takes no more memory than the limit allows, whatever it changes.
func TestBatchWithinLimit(t *testing.T) {
	alone(t)
	rng := seed.Rand(t)
	leaves, _ := pools[uint64]()
	for range seed.Times(15, 60) {
		limit := int64((2 + rng.IntN(60)) * leaves.SlotBytes())
		tree, err := New[uint64](limit)
		if err != nil {
			t.Fatal(err)
		}
		model := map[uint64]uint64{}
		for range 12 {
			limitedBatch(t, tree, model, rng)
		}
		checkModel(t, tree, model, rng)
		tree.Close()
	}
}

// limitedBatch sets many keys, or none.
func limitedBatch(t *testing.T, tree *Tree[uint64], model map[uint64]uint64, rng *rand.Rand) {
	t.Helper()
	set, n := map[uint64]bool{}, rng.IntN(2000)
	base, step := rng.Uint64N(1<<20), 1+rng.Uint64N(100)
	for range n {
		set[base+rng.Uint64N(uint64(n)*step)] = true
	}
	ops := &Ops[uint64]{Kind: op.Set, Keys: sortedKeys(set)}
	for _, k := range ops.Keys {
		ops.Vals = append(ops.Vals, k^1)
	}
	for tree.sweep() { // else what was retired before may become free meanwhile
		time.Sleep(time.Millisecond)
	}
	before := tree.Bytes()
	err := tree.Apply(ops, 2)
	switch {
	case errors.Is(err, op.ErrLimit):
		if tree.Bytes() != before {
			t.Fatalf("a batch that fails takes %d bytes", tree.Bytes()-before)
		}
	case err != nil:
		t.Fatal(err)
	default:
		for i, k := range ops.Keys {
			model[k] = ops.Vals[i]
		}
	}
	if got := tree.Bytes(); got > tree.limit.Load() {
		t.Fatalf("%d bytes after a batch of %d keys, the limit is %d", got, len(ops.Keys), tree.limit.Load())
	}
}

// denials denies requests from number n of those that come, 0 for none, until
// somebody allows them.
type denials struct {
	n       int
	count   atomic.Int64
	allowed atomic.Bool
}

func (d *denials) deny() bool {
	at := int(d.count.Add(1))
	return d.n > 0 && at >= d.n && !d.allowed.Load()
}

// smallChunks makes trees take memory for few nodes at a time, until the test
// ends, so that there are many requests.
func smallChunks(t *testing.T) (leaves, uppers, pieces *arena.Pool) {
	oldLeaves, oldUppers, oldKeeps := leaves64, uppers64, keeps
	leaves64 = arena.NewPool(32, simd.RegularBlock, simd.RegularPilot[uint64]())
	uppers64 = arena.NewPool(32, simd.RegularUpper[uint64]())
	keeps = arena.NewPool(32, pieceBytes)
	t.Cleanup(func() { leaves64, uppers64, keeps = oldLeaves, oldUppers, oldKeeps })
	return leaves64, uppers64, keeps
}

// deniedLog is operations on a tree that take memory.
func deniedLog(rng *rand.Rand) (log []func(tree *Tree[uint64], model map[uint64]uint64) error) {
	set := func(k uint64) {
		log = append(log, func(tree *Tree[uint64], model map[uint64]uint64) error {
			_, _, err := tree.Set(k, k+1)
			if err == nil {
				model[k] = k + 1
			}
			return err
		})
	}
	batch := func(n int, spread uint64) {
		keys := map[uint64]bool{}
		for range n {
			keys[rng.Uint64N(spread)] = true
		}
		log = append(log, func(tree *Tree[uint64], model map[uint64]uint64) error {
			ops := &Ops[uint64]{Kind: op.Set, Keys: sortedKeys(keys)}
			ops.Vals = ops.Keys
			err := tree.Apply(ops, 1)
			if err == nil {
				for _, k := range ops.Keys {
					model[k] = k
				}
			}
			return err
		})
	}
	for k := range uint64(400) {
		set(k * 1000)
	}
	batch(8000, 1<<20)
	for range 5000 {
		set(rng.Uint64N(1 << 20))
	}
	batch(10_000, 1<<21)
	batch(300, 400)
	for k := range uint64(1000) {
		set(1<<30 + k)
	}
	return log
}

// Whenever memory is denied, the operation fails whole, the tree is right, and the
// operation succeeds when there is memory again. In builds with stalls each node
// is denied, in others each chunk of nodes.
func TestMemoryDenied(t *testing.T) {
	alone(t)
	s := seed.Of(t)
	leaves, uppers, pieces := smallChunks(t)
	t.Cleanup(epoch.SetPace(time.Hour)) // nothing is used twice: each split asks for memory
	for _, limit := range []int64{0, 1 << 40} {
		for _, pool := range []*arena.Pool{leaves, uppers, pieces} {
			n := 0
			for denyFrom(t, s, pool, n, limit) {
				n += 1 + n/seed.Size(4, 20)
			}
			t.Logf("denied: some of %d requests", n-1)
		}
	}
}

// denyFrom denies requests of a pool from number n on, until one operation has
// failed, and reports whether there were as many.
func denyFrom(t *testing.T, s uint64, pool *arena.Pool, n int, limit int64) bool {
	t.Helper()
	tree, err := New[uint64](limit)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	d := &denials{n: n}
	switch {
	case !stall.On:
		pool.Deny(d.deny)
		defer pool.Deny(nil)
	case pool == tree.leaves.pool:
		tree.leaves.deny = d.deny
	case pool == tree.keeps.pool:
		tree.keeps.deny = d.deny
	default:
		tree.uppers.deny = d.deny
	}
	rng := rand.New(rand.NewPCG(s, 7))
	model := map[uint64]uint64{}
	for i, op := range deniedLog(rng) {
		if i == 300 { // from here on states are kept
			snap, err := tree.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			then := maps.Clone(model)
			defer func() {
				checkView(t, snap, then, rng)
				snap.Close()
			}()
		}
		before := tree.Len()
		if err := op(tree, model); err != nil {
			if tree.Len() != before {
				t.Fatalf("operation %d failed, request %d denied: %v, but %d entries have become %d", i, n, err, before, tree.Len())
			}
			checkModel(t, tree, model, rng)
			d.allowed.Store(true)
			if err := op(tree, model); err != nil {
				t.Fatalf("operation %d failed again, request %d denied: %v", i, n, err)
			}
		}
	}
	checkModel(t, tree, model, rng)
	d.allowed.Store(true)
	for k := range model {
		if k%3 > 0 {
			tree.Delete(k)
			delete(model, k)
		}
	}
	checkModel(t, tree, model, rng)
	return int(d.count.Load()) >= n
}
