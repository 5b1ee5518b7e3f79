package radix

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// Operations of one batch on one key are one change: nobody sees what is between two of them, whether
// the batch is small, has several rounds and workers, or goes to a fork.
func TestOneKeyOfABatchIsOneChange(t *testing.T) {
	for _, n := range []int{3, 60, 2000, 40_000} {
		for _, forked := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " ", forked), func(t *testing.T) {
				tree := New(0)
				defer tree.Close()
				tree.Set("k", last)
				if forked {
					defer mustSnapshot(t, tree).Close()
				}
				for _, kind := range []op.Kind{op.Set, op.Delete} {
					seenBeside(t, tree, setsOf(n, kind), 200/(1+n/100)+seed.Times(1, 3))
				}
				mustCheck(t, tree)
			})
		}
	}
}

const last = 7 // the value that key k has between two batches

// setsOf returns a batch that changes key k often, among others, at the beginning and at the end. All
// but the last of these changes are of a kind.
func setsOf(n int, kind op.Kind) *Ops {
	o := &Ops{Keys: make([]string, n), Kinds: make([]op.Kind, n), Vals: make([]uint64, n), Workers: 3}
	for i := range o.Keys {
		o.Keys[i], o.Kinds[i], o.Vals[i] = "k", kind, 1
		if i%2 == 1 && i > 1 {
			o.Keys[i], o.Kinds[i] = fmt.Sprintf("%05d", i*31%n), op.Set
		}
	}
	o.Keys[n-1], o.Kinds[n-1], o.Vals[n-1] = "k", op.Set, last
	return o
}

// seenBeside applies a batch some times while others read key k.
func seenBeside(t *testing.T, tree *Tree, o *Ops, rounds int) {
	t.Helper()
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() && !t.Failed() {
				if v, ok := tree.Get("k"); v != last || !ok {
					t.Errorf("key k is %d, %t in a batch of %d", v, ok, len(o.Keys))
				}
			}
		})
	}
	for range rounds {
		if err := tree.Apply(o); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	readers.Wait()
}

// However many keys a batch has, and wherever equal ones are, it finds them.
func TestCombine(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 2, warmKeys, warmKeys + 1, 5000, 30_000} {
		for _, keys := range []int{1, 2, 50, n + 1, 100 * n} {
			o := &Ops{Keys: make([]string, n), Workers: 1 + rng.IntN(3)}
			first, before, want := []int32{}, map[string]int32{}, make([]int32, n)
			for i := range o.Keys {
				key := fmt.Sprint(rng.IntN(max(keys, 1)))
				o.Keys[i] = key
				if last, ok := before[key]; ok {
					want[last] = int32(i)
				} else {
					first = append(first, int32(i))
				}
				before[key] = int32(i)
			}
			o.combine()
			for i, at := range want {
				if o.after(int32(i)) != at {
					t.Fatalf("%d of %d keys: operation %d is after %d, not %d", keys, n, o.after(int32(i)), i, at)
				}
			}
			heads := make([]int32, o.changes())
			for i := range heads {
				heads[i] = o.head(i)
			}
			if !slices.Equal(heads, first) {
				t.Fatalf("%d of %d keys: %d first operations, not %d", keys, n, len(heads), len(first))
			}
		}
	}
}
