package radix

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
)

// A value that was retired is freed when no snapshot has it, even if nobody writes any more, and
// also where the tree was closed before.
func TestRetiredValuesOfSnapshots(t *testing.T) {
	t.Cleanup(epoch.SetPace(0))
	tree := New(0)
	var mu sync.Mutex
	var freed []uint64
	tree.OnFree(func(vals []uint64) {
		mu.Lock()
		defer mu.Unlock()
		freed = append(freed, vals...)
	})
	wait := func(want ...uint64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			got := slices.Sorted(slices.Values(freed))
			mu.Unlock()
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(end) || len(got) > len(want) {
				t.Fatalf("values %d are free, want %d", got, want)
			}
		}
	}
	put := func(val uint64) {
		old, had, err := tree.Set("key", val)
		if err != nil {
			t.Fatal(err)
		}
		if had {
			tree.Retire([]uint64{old}, []uint64{old / 10}) // the epoch in which it was put in
		}
	}
	snapshot := func() *Snapshot {
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	put(10)
	put(11)
	wait(10)
	first := snapshot() // of epoch 1, and has 11
	put(20)
	put(21)
	wait(10, 20)
	second := snapshot() // of epoch 2, and has 21
	put(30)
	put(31)
	wait(10, 20, 30)
	second.Close()
	wait(10, 20, 21, 30)
	third := snapshot() // has 31, and is closed when the tree is
	put(40)
	tree.Close()
	third.Close()
	wait(10, 20, 21, 30, 31)
	first.Close() // all memory is given back as a whole
	tree.Retire([]uint64{40}, []uint64{4})
	wait(10, 20, 21, 30, 31)
}

// A goroutine that exchanges values ends generations as it goes: few of them wait for a
// sweep.
func TestExchangedValuesAreFew(t *testing.T) {
	t.Cleanup(epoch.SetPace(0))
	tree := New(0)
	defer tree.Close()
	var waiting atomic.Int64
	tree.OnFree(func(vals []uint64) { waiting.Add(-int64(len(vals))) })
	for i := range 300_000 {
		old, had, err := tree.Set(fmt.Sprint(i%100), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if !had {
			continue
		}
		waiting.Add(1)
		tree.Retire([]uint64{old}, []uint64{1})
		if n := waiting.Load(); n > 5000 {
			t.Fatalf("%d values wait after %d sets", n, i)
		}
	}
}
