package bplus

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// Views are right that are made, and read, while the tree's leaves are split and
// merged, and others make and close snapshots.
func TestViewsBesideAWriter(t *testing.T) {
	hasty(t)
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 1))
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	model := map[uint64]uint64{}
	const space = 60_000
	type taken struct {
		s     *Snapshot[uint64]
		model map[uint64]uint64
	}
	queue := make(chan taken, 3)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(first, uint64(2+w)))
			for x := range queue {
				if !t.Failed() {
					viewBeside(t, x.s, x.model, 1+rng.IntN(2))
				}
				x.s.Close()
			}
		})
	}
	for round := range seed.Count(40) {
		lo := rng.Uint64N(space)
		for range 4000 {
			k, v := (lo+rng.Uint64N(space/4))%space, rng.Uint64()
			if grow := round/4%2 == 0; grow == (rng.IntN(10) < 9) {
				tree.Set(k, v)
				model[k] = v
			} else {
				tree.Delete(k)
				delete(model, k)
			}
		}
		if round%5 == 4 {
			hi := min(lo+rng.Uint64N(space/3), space)
			tree.DeleteRange(lo, hi, nil)
			maps.DeleteFunc(model, func(k, _ uint64) bool { return lo <= k && k <= hi })
		}
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		queue <- taken{s, maps.Clone(model)}
	}
	close(queue)
	wg.Wait()
	if n := tree.Kept(); n != 0 {
		t.Errorf("%d bytes are kept without a snapshot", n)
	}
}

// viewBeside compares a view with a map.
func viewBeside(t *testing.T, s *Snapshot[uint64], model map[uint64]uint64, workers int) {
	v, err := s.View(workers)
	if err != nil {
		t.Error(err)
		return
	}
	defer v.dir.Release()
	want := slices.Sorted(maps.Keys(model))
	if v.Len() != len(want) {
		t.Errorf("a view has %d entries, want %d", v.Len(), len(want))
		return
	}
	keys, vals, only := make([]uint64, len(want)), make([]uint64, len(want)), make([]uint64, len(want))
	v.CopyOut(0, len(want), keys, vals)
	v.CopyOut(0, len(want), nil, only)
	for i, k := range want {
		if keys[i] != k || vals[i] != model[k] || only[i] != vals[i] {
			t.Errorf("entry %d of a view is %d → %d, want %d → %d", i, keys[i], vals[i], k, model[k])
			return
		}
	}
}
