package hbplus

import (
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/seed"
)

// Both methods of the paper leave a tree that is as it must be and has all keys,
// and the mirror of the synchronous one has every inner node.
func TestUpdatesOfThePaper(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 100, 20_000} {
		for _, workers := range []int{1, 3} {
			for _, mirrored := range []bool{false, true} {
				tree, err := bplus.Load(n, func(lo int, keys, vals []uint64) {
					for i := range keys {
						keys[i], vals[i] = uint64(lo+i)<<40, uint64(lo+i)
					}
				}, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				q := &Queries[uint64]{Keys: make([]uint64, 20_000), Vals: make([]uint64, 20_000)}
				for i := range q.Keys {
					q.Keys[i], q.Vals[i] = rng.Uint64()>>10|1, uint64(i)
				}
				updateOnce(t, tree, q, workers, mirrored)
				for i, k := range q.Keys {
					if v, ok := tree.Get(k); !ok || v != q.Vals[i] {
						t.Fatalf("n %d, workers %d: key %d has %d, %v; it should have %d", n, workers, k, v, ok, q.Vals[i])
					}
				}
				if err := tree.Check(); err != nil {
					t.Error(err)
				}
				if got := tree.Len(); got != n+len(q.Keys) {
					t.Errorf("%d entries of %d", got, n+len(q.Keys))
				}
				tree.Close()
			}
		}
	}
}

func updateOnce(t *testing.T, tree *bplus.Tree[uint64], q *Queries[uint64], workers int, mirrored bool) {
	t.Helper()
	if !mirrored {
		later, err := Asynchronous(tree, q, workers)
		if err != nil {
			t.Fatal(err)
		}
		if later == 0 {
			t.Error("no change was left to one thread, though leaves have been split")
		}
		return
	}
	m := new(Mirror[uint64])
	m.CopyAll(tree)
	if !m.Equal(tree) {
		t.Error("the mirror differs before any change")
	}
	if err := Synchronous(tree, m, q, workers); err != nil {
		t.Fatal(err)
	}
	if !m.Equal(tree) {
		t.Error("the mirror differs from the tree")
	}
}

// Searches among updates find what is there all the time.
func TestSearchesAmongUpdates(t *testing.T) {
	const n = 10_000
	tree, err := bplus.Load(n, func(lo int, keys, vals []uint64) {
		for i := range keys {
			keys[i], vals[i] = uint64(lo+i)*2, uint64(lo+i)
		}
	}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	q := &Queries[uint64]{Keys: make([]uint64, n), Vals: make([]uint64, n), Gets: make([]bool, n)}
	for i := range n {
		q.Keys[i], q.Gets[i] = uint64(i)*2+uint64(i%2), i%2 == 0 // odd ones are new
	}
	if _, err := Asynchronous(tree, q, 3); err != nil {
		t.Fatal(err)
	}
	if q.Hits != n/2 || tree.Len() != n+n/2 {
		t.Errorf("%d hits of %d, %d entries of %d", q.Hits, n/2, tree.Len(), n+n/2)
	}
	for i := 0; i < n; i += 2 {
		if q.Vals[i] != uint64(i) {
			t.Fatalf("key %d has %d", q.Keys[i], q.Vals[i])
		}
	}
}
