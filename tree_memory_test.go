package pando_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
)

// Trees that are forgotten are found by the garbage collector in time, with
// their snapshots.
func TestForgottenTreesAreCollected(t *testing.T) {
	keys := make([]uint64, 200_000)
	for i := range keys {
		keys[i] = uint64(i) * 7
	}
	most := int64(0)
	for i := range 60 {
		tree, err := pando.TreeOf(keys, keys)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			s := tree.Snapshot()
			tree.Set(1, 1)
			if s.Len() != len(keys) {
				t.Fatal("a snapshot has another length")
			}
		}
		most = max(most, arena.InUse())
	}
	if one := int64(len(keys)) * 20; most > 20*one {
		t.Errorf("forgotten trees held %d MiB, one has %d", most>>20, one>>20)
	}
	for range 2000 { // others may keep the machine busy
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if arena.InUse() < 8<<20 {
			return
		}
	}
	t.Errorf("%d MiB are left", arena.InUse()>>20)
}
