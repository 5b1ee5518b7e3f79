package concurrent_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// vectorKeys is more than a piece of a vector operation, so that several workers
// share one.
const vectorKeys = 70_000

// evenTree returns a tree of even keys, all with one value.
func evenTree(t *testing.T, val uint64, opts ...pando.Option) *pando.Tree[uint64, uint64] {
	t.Helper()
	keys, vals := make([]uint64, vectorKeys), make([]uint64, vectorKeys)
	for i := range keys {
		keys[i], vals[i] = uint64(2*i), val
	}
	tree, err := pando.TreeOf(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// churn sets and deletes odd keys in bursts, so that leaves are split and merged,
// until it is told to stop.
func churn(tree *pando.Tree[uint64, uint64], stop *atomic.Bool, rng *rand.Rand) {
	for !stop.Load() {
		from, n := rng.Uint64N(vectorKeys), rng.Uint64N(600)
		for i := from; i < from+n; i++ {
			if tree.Set(2*i+1, 0) != nil {
				return
			}
		}
		if rng.IntN(2) == 0 {
			tree.DeleteRange(2*from+1, 2*from+1)
		}
		for i := from; i < from+n; i++ {
			tree.Delete(2*i + 1)
		}
	}
}

// Beside writers each entry that stays is read once, whatever leaves do.
func TestVectorsBesideWriters(t *testing.T) {
	s := seed.Of(t)
	tree := evenTree(t, 1, pando.Workers(3))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range uint64(3) {
		wg.Go(func() { churn(tree, &stop, rand.New(rand.NewPCG(s, i))) })
	}
	counts := make([]int, 2)
	for range seed.Times(8, 25) {
		if got := pando.Aggregate(tree, 0, 1<<62); got.Sum != vectorKeys || got.Count < vectorKeys || got.Max != 1 {
			t.Errorf("Aggregate is %+v, and %d entries have value 1", got, vectorKeys)
		}
		if pando.Histogram(tree, 0, 1<<62, []uint64{1}, counts); counts[1] != vectorKeys {
			t.Errorf("Histogram counts %d, and %d entries have value 1", counts[1], vectorKeys)
		}
		found := pando.Select(tree, 0, 1<<62, pando.Equal[uint64](1))
		for i, k := range found.Keys {
			if k != uint64(2*i) || found.Vals[i] != 1 {
				t.Fatalf("entry %d that Select returns is %d, %d", i, k, found.Vals[i])
			}
		}
		if len(found.Keys) != vectorKeys {
			t.Errorf("Select returns %d entries, and %d have value 1", len(found.Keys), vectorKeys)
		}
		moment := tree.Snapshot()
		a, b := pando.Aggregate(moment, 0, 1<<62), pando.Aggregate(moment, 0, 1<<62)
		if a != b || a.Sum != vectorKeys || a.Count != moment.Len() {
			t.Errorf("a snapshot of %d entries is %+v, then %+v", moment.Len(), a, b)
		}
		moment.Close()
	}
	stop.Store(true)
	wg.Wait()
}

// Every Transform changes each entry that stays once, and nothing that others do
// to it is lost.
func TestTransformBesideWriters(t *testing.T) {
	s := seed.Of(t)
	tree := evenTree(t, 0, pando.Workers(3))
	var stop atomic.Bool
	var writers, transforms sync.WaitGroup
	var updates atomic.Uint64
	for i := range uint64(2) {
		rng := rand.New(rand.NewPCG(s, i))
		writers.Go(func() { churn(tree, &stop, rng) })
		rng2 := rand.New(rand.NewPCG(s, i+10))
		writers.Go(func() {
			for !stop.Load() {
				if err := tree.Update(2*rng2.Uint64N(vectorKeys), func(old uint64, had bool) (uint64, bool) { return old + 1<<32, true }); err != nil {
					t.Error(err)
				}
				updates.Add(1)
			}
		})
		writers.Go(func() { // states are kept, and let go
			for !stop.Load() {
				moment := tree.Snapshot()
				moment.Get(0)
				moment.Close()
			}
		})
	}
	rounds := 12
	if seed.RaceDetector {
		rounds = 3
	}
	for range 2 {
		transforms.Go(func() {
			for range rounds {
				if n, err := pando.Transform(tree, 0, 1<<62, pando.Add[uint64](1)); n < vectorKeys || err != nil {
					t.Errorf("Transform changes %d of at least %d entries: %v", n, vectorKeys, err)
				}
			}
		})
	}
	transforms.Wait()
	stop.Store(true)
	writers.Wait()
	total := uint64(0)
	for i := range uint64(vectorKeys) {
		v, ok := tree.Get(2 * i)
		if !ok || uint32(v) != uint32(2*rounds) {
			t.Fatalf("key %d was changed %d times by %d Transforms", 2*i, uint32(v), 2*rounds)
		}
		total += v >> 32
	}
	if total != updates.Load() {
		t.Fatalf("%d of %d updates are there", total, updates.Load())
	}
}

// A snapshot beside a Transform is one moment: with one worker, the entries up to
// some key are changed, and the others not yet. Later changes do not show.
func TestSnapshotsBesideTransform(t *testing.T) {
	tree := evenTree(t, 0, pando.Workers(1))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			if _, err := pando.Transform(tree, 0, 1<<62, pando.Add[uint64](1)); err != nil {
				t.Error(err)
			}
		}
	})
	rounds := 40
	if seed.RaceDetector {
		rounds = 8
	}
	for range rounds {
		moment := tree.Snapshot()
		first, _ := moment.Get(0)
		sum, last := uint64(0), first
		for k, v := range moment.All() {
			if v > last || v+1 < first {
				t.Fatalf("key %d has %d behind %d, the first has %d", k, v, last, first)
			}
			sum, last = sum+v, v
		}
		if got := pando.Aggregate(moment, 0, 1<<62); got.Sum != sum || got.Max != first {
			t.Fatalf("%+v later, the sum was %d, the greatest %d", got, sum, first)
		}
		moment.Close()
	}
	stop.Store(true)
	wg.Wait()
}
