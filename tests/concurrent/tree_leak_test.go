package concurrent_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/seed"
)

// Trees that are made, filled, emptied, snapshotted, closed or forgotten leave
// nothing behind: no memory, no goroutine, no mapping. PANDO_STRESS is how long
// to go on ("2h"); a second without it.
func TestTreesLeaveNothing(t *testing.T) {
	rng := seed.Rand(t)
	d := time.Second
	if s, err := time.ParseDuration(os.Getenv("PANDO_STRESS")); err == nil {
		d = s
	}
	oneLife(t, rng) // what is made once is made now
	settle(t, func() bool { return bplus.Taken() == 0 })
	goroutines, maps := runtime.NumGoroutine(), mappings()
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		for range 20 {
			oneLife(t, rng)
		}
		settle(t, func() bool { return bplus.Taken() == 0 && runtime.NumGoroutine() <= goroutines })
		if n := mappings(); n > maps+100 {
			t.Fatalf("%d mappings, %d at first", n, maps)
		}
	}
}

// settle runs the garbage collector until something is true.
func settle(t *testing.T, ok func() bool) {
	t.Helper()
	for range 200 {
		runtime.GC()
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%d chunks of nodes are still taken, %d goroutines run", bplus.Taken(), runtime.NumGoroutine())
}

// mappings returns the number of ranges of addresses that the process has, or 0
// where that is not to be known.
func mappings() int {
	b, _ := os.ReadFile("/proc/self/maps")
	return bytes.Count(b, []byte("\n"))
}

// oneLife makes a tree and uses it.
func oneLife(t *testing.T, rng *rand.Rand) {
	t.Helper()
	if rng.IntN(2) == 0 {
		lifeOf(t, rng, func(n uint64) uint64 { return n })
	} else {
		lifeOf(t, rng, func(n uint64) *uint64 { return &n })
	}
}

func lifeOf[V any](t *testing.T, rng *rand.Rand, of func(uint64) V) {
	t.Helper()
	tree, err := pando.NewTree[uint64, V](pando.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	empty := tree.Stats().LeafBytes
	var snaps []*pando.Frozen[uint64, V]
	var keys []uint64
	for range 1 + rng.IntN(4) {
		n := rng.IntN(20_000)
		vals := make([]V, n)
		keys = keys[:0]
		for i := range n {
			keys = append(keys, rng.Uint64N(1<<20))
			vals[i] = of(keys[i])
		}
		if err := tree.SetBatch(keys, vals); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 {
			s := tree.Snapshot()
			if rng.IntN(2) == 0 {
				s.Len()
			}
			snaps = append(snaps, s)
		}
		for _, k := range keys[:n/2] {
			tree.Delete(k)
		}
	}
	for i, s := range snaps {
		if rng.IntN(2) == 0 {
			s.Close()
			snaps[i] = nil
		}
	}
	if len(snaps) == 0 {
		emptied(t, tree, empty)
	}
	if rng.IntN(2) == 0 {
		tree.Close()
	}
}

// emptied deletes all entries of a tree: it is then as small as a new one.
func emptied[V any](t *testing.T, tree *pando.Tree[uint64, V], empty int64) {
	t.Helper()
	tree.DeleteRange(0, 1<<20)
	for try := 0; ; try++ { // what was retired is free two generations later
		tree.Set(1, *new(V))
		tree.Delete(1)
		n := tree.Stats().LeafBytes
		if tree.Len() != 0 {
			t.Fatalf("%d entries are left", tree.Len())
		}
		if n <= empty {
			return
		}
		if try == 200 {
			t.Fatalf("an empty tree takes %d bytes, a new one %d", n, empty)
		}
		time.Sleep(time.Millisecond)
	}
}
