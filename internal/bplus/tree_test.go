package bplus

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// alone skips a test of one goroutine where the race detector would only make it
// slow.
func alone(t *testing.T) {
	t.Helper()
	if !seed.Long() && seed.RaceDetector {
		t.Skip("one goroutine")
	}
}

func TestAgainstMap(t *testing.T) {
	alone(t)
	t.Run("32", func(t *testing.T) { againstMap[uint32](t) })
	t.Run("64", func(t *testing.T) { againstMap[uint64](t) })
}

func againstMap[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, space := range []uint64{10, 1000, 100_000, 1 << 32} {
		tree, err := New[C](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[C]C{}
		draw := func() C {
			switch rng.IntN(20) {
			case 0:
				return 0
			case 1:
				return ^C(0)
			case 2:
				return ^C(0) - C(rng.Uint64N(space))
			}
			return C(rng.Uint64N(space))
		}
		for phase := range 6 {
			grow := phase%2 == 0
			for range 20_000 {
				k, v := draw(), C(rng.Uint64())
				old, had := model[k]
				var gotOld C
				var gotHad bool
				if grow == (rng.IntN(10) < 8) {
					gotOld, gotHad, err = tree.Set(k, v)
					model[k] = v
				} else {
					gotOld, gotHad, err = tree.Delete(k)
					delete(model, k)
				}
				if err != nil || gotOld != old || gotHad != had {
					t.Fatalf("key %d: had %d, %t (%v), want %d, %t", k, gotOld, gotHad, err, old, had)
				}
			}
			checkModel(t, tree, model, rng)
		}
		for k := range model {
			tree.Delete(k)
			delete(model, k)
		}
		checkModel(t, tree, model, rng)
		tree.Close()
	}
}

// checkModel compares a tree with a map by every way of reading.
func checkModel[C Code](t *testing.T, tree *Tree[C], model map[C]C, rng *rand.Rand) {
	t.Helper()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(model))
	if tree.Len() != len(keys) {
		t.Fatalf("%d entries, want %d", tree.Len(), len(keys))
	}
	c := tree.Ascend(0)
	for i, k := range keys {
		gk, gv, ok := c.Next()
		if !ok || gk != k || gv != model[k] {
			t.Fatalf("entry %d: %d → %d (%t), want %d → %d", i, gk, gv, ok, k, model[k])
		}
	}
	if k, _, ok := c.Next(); ok {
		t.Fatalf("%d follows the last key", k)
	}
	c = tree.Descend(^C(0))
	for i, k := range slices.Backward(keys) {
		gk, gv, ok := c.Next()
		if !ok || gk != k || gv != model[k] {
			t.Fatalf("entry %d from the end: %d → %d (%t), want %d → %d", i, gk, gv, ok, k, model[k])
		}
	}
	if k, _, ok := c.Next(); ok {
		t.Fatalf("%d comes before the first key", k)
	}
	for range 500 {
		k := C(rng.Uint64())
		if len(keys) > 0 && rng.IntN(3) > 0 {
			k = keys[rng.IntN(len(keys))] + C(rng.IntN(3)) - 1
		}
		want, ok := model[k]
		if v, had := tree.Get(k); v != want || had != ok {
			t.Fatalf("Get(%d) = %d, %t, want %d, %t", k, v, had, want, ok)
		}
		i, _ := slices.BinarySearch(keys, k)
		if r := tree.Rank(k, false); r != i {
			t.Fatalf("Rank(%d) = %d, want %d", k, r, i)
		}
		if ok {
			if r := tree.Rank(k, true); r != i+1 {
				t.Fatalf("Rank after %d = %d, want %d", k, r, i+1)
			}
			if gk, gv, ok := tree.At(i); !ok || gk != k || gv != want {
				t.Fatalf("At(%d) = %d → %d (%t), want %d → %d", i, gk, gv, ok, k, want)
			}
		}
	}
	if _, _, ok := tree.At(len(keys)); ok {
		t.Fatal("there is one entry too many")
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}
