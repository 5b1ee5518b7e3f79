package bplus

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// Snapshots stay as they were while the tree is changed, emptied and filled
// again, and others are taken and closed in any order.
func TestSnapshotsStay(t *testing.T) {
	hasty(t)
	rng := seed.Rand(t)
	for _, space := range []uint64{100, 20_000, 1 << 40} {
		tree, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[uint64]uint64{}
		type taken struct {
			s     *Snapshot[uint64]
			model map[uint64]uint64
		}
		var all []taken
		for round := range seed.Times(25, 60) {
			for range rng.IntN(3000) {
				k, v := rng.Uint64N(space), rng.Uint64()
				if grow := round/10%2 == 0; grow == (rng.IntN(10) < 9) {
					tree.Set(k, v)
					model[k] = v
				} else {
					tree.Delete(k)
					delete(model, k)
				}
			}
			if rng.IntN(4) == 0 {
				applyBoth(t, tree, model, rng, rng.IntN(5000), space, 2)
			}
			if rng.IntN(2) == 0 {
				s, err := tree.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, taken{s, maps.Clone(model)})
			}
			if len(all) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(all))
				checkView(t, all[i].s, all[i].model, rng)
				all[i].s.Close()
				all = slices.Delete(all, i, i+1)
			}
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range all {
			checkView(t, a.s, a.model, rng)
		}
		for _, a := range all {
			a.s.Close()
		}
		if n := tree.Kept(); n != 0 {
			t.Errorf("%d bytes are kept without a snapshot", n)
		}
		checkModel(t, tree, model, rng)
		tree.Close()
	}
}

// checkView compares a snapshot with a map.
func checkView[C Code](t *testing.T, s *Snapshot[C], model map[C]C, rng *rand.Rand) {
	t.Helper()
	v, err := s.View(1)
	if err != nil {
		t.Fatal(err)
	}
	defer v.dir.Release()
	want := slices.Sorted(maps.Keys(model))
	if v.Len() != len(want) {
		t.Fatalf("snapshot has %d entries, want %d", v.Len(), len(want))
	}
	keys, vals := make([]C, len(want)), make([]C, len(want))
	v.CopyOut(0, len(keys), keys, vals)
	for i, k := range want {
		if keys[i] != k || vals[i] != model[k] {
			t.Fatalf("entry %d of a snapshot is %d → %d, want %d → %d", i, keys[i], vals[i], k, model[k])
		}
	}
	for range 100 {
		k := C(rng.Uint64())
		if len(want) > 0 && rng.IntN(4) > 0 {
			k = want[rng.IntN(len(want))] + C(rng.Uint64N(3)) - 1
		}
		i, _ := slices.BinarySearch(want, k)
		rank, val, ok := v.Seek(k)
		if w, had := model[k]; rank != i || ok != had || val != w {
			t.Fatalf("Seek(%d) = %d, %d, %t, want %d, %d, %t", k, rank, val, ok, i, w, had)
		}
		if len(want) > 0 {
			lo := rng.IntN(len(want))
			n := rng.IntN(min(1000, len(want)-lo) + 1)
			v.CopyOut(lo, n, keys[:n], nil)
			if !slices.Equal(keys[:n], want[lo:lo+n]) {
				t.Fatalf("entries %d to %d are others", lo, lo+n)
			}
		}
	}
}
