package concurrent_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// Trees that are made, filled, emptied, snapshotted, closed or forgotten leave
// nothing behind: no memory, no goroutine, no mapping. PANDO_LONG=3600 goes on
// for two hours.
func TestTreesLeaveNothing(t *testing.T) {
	rng := seed.Rand(t)
	d := seed.Lasting(300*time.Millisecond, 2*time.Second)
	oneLife(t, rng) // what is made once is made now
	settle(t, func() bool { return taken() == 0 })
	goroutines, maps := runtime.NumGoroutine(), mappings()
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		lives := 20
		if seed.RaceDetector {
			lives = 5
		}
		for range lives {
			oneLife(t, rng)
		}
		settle(t, func() bool { return taken() == 0 && runtime.NumGoroutine() <= goroutines })
		if n := mappings(); n > maps+100 {
			t.Fatalf("%d mappings, %d at first", n, maps)
		}
	}
}

// taken returns the number of chunks of nodes that trees have.
func taken() int { return bplus.Taken() + radix.Taken() }

// settle runs the garbage collector until something is true.
func settle(t *testing.T, ok func() bool) {
	t.Helper()
	for range 4000 { // others may keep the machine busy
		runtime.GC()
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%d chunks of nodes are still taken, %d goroutines run", taken(), runtime.NumGoroutine())
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
	same := func(n uint64) uint64 { return n }
	point := func(n uint64) *parcel { return &parcel{key: n} }
	text := func(n uint64) string { return strings.Repeat("0", int(n%300)) + strconv.FormatUint(n, 10) }
	switch rng.IntN(4) {
	case 0:
		lifeOf(t, rng, 20_000, same, same)
	case 1:
		lifeOf(t, rng, 20_000, same, point)
	case 2:
		lifeOf(t, rng, 3000, text, same)
	case 3:
		lifeOf(t, rng, 3000, text, point)
	}
}

func lifeOf[K pando.Key, V any](t *testing.T, rng *rand.Rand, most int, key func(uint64) K, of func(uint64) V) {
	t.Helper()
	tree, err := pando.NewTree[K, V](pando.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	empty := tree.Stats().LeafBytes
	var snaps []*pando.Frozen[K, V]
	var keys []K
	for range 1 + rng.IntN(4) {
		n := rng.IntN(most)
		vals := make([]V, n)
		keys = keys[:0]
		for i := range n {
			k := rng.Uint64N(1 << 20)
			keys, vals[i] = append(keys, key(k)), of(k)
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
		emptied(t, tree, key(1), empty)
	}
	if rng.IntN(2) == 0 {
		tree.Close()
	}
}

// emptied deletes all entries of a tree: it is then as small as a new one.
func emptied[K pando.Key, V any](t *testing.T, tree *pando.Tree[K, V], one K, empty int64) {
	t.Helper()
	if last, _, ok := tree.Max(); ok {
		var least K
		tree.DeleteRange(least, last)
	}
	if tree.Stats().Layout == pando.Radix {
		empty += 64 << 10 // the leaves of the loop below, which wait to be free
	}
	for try := 0; ; try++ { // what was retired is free two generations later
		tree.Set(one, *new(V))
		tree.Delete(one)
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
