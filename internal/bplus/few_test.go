package bplus

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/stall"
)

// Few reads short ranges, and a cursor those whose place it returns, also where the leaf
// was changed in between.
func TestFew(t *testing.T) {
	testFew[uint32](t, seed.Rand(t))
	testFew[uint64](t, seed.Rand(t))
}

func testFew[C Code](t *testing.T, rng *rand.Rand) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	const space = 40_000
	keys := []C{0, ^C(0)}
	for range 6000 {
		keys = append(keys, C(rng.Uint64N(space)))
	}
	for _, k := range keys {
		tree.Set(k, ^k)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	wholes := 0
	for range 5000 {
		lo := C(rng.Uint64N(space + 100))
		hi := lo + C(rng.Uint64N(1<<rng.IntN(12)))
		if rng.IntN(20) == 0 {
			hi = ^C(0)
		}
		var ks, vs [FewRoom]C
		from, to, place, ok := tree.Few(lo, hi, ks[:], vs[:])
		if !place.Guard.Holds() {
			t.Fatal("nobody has written, and the guard does not hold")
		}
		first, _ := slices.BinarySearch(keys, lo)
		end, there := slices.BinarySearch(keys, hi)
		if there {
			end++
		}
		if ok {
			wholes++
			if !slices.Equal(ks[from:to], keys[first:end]) {
				t.Fatalf("from %d to %d: %d; there are %d", lo, hi, ks[from:to], keys[first:end])
			}
			for i := from; i < to; i++ {
				if vs[i] != ^ks[i] {
					t.Fatalf("%d has value %d", ks[i], vs[i])
				}
			}
			continue
		}
		if rng.IntN(2) == 0 && first < len(keys)-1 { // it is gone when the cursor comes
			tree.Delete(keys[first])
			keys = slices.Delete(keys, first, first+1)
		}
		c := tree.Ascend(0)
		c.MoveTo(&place, lo)
		for i := first; i < min(first+60, len(keys)); i++ {
			if k, v, ok := c.Next(); !ok || k != keys[i] || v != ^k {
				t.Fatalf("from %d on comes %d (%t), not %d", lo, k, ok, keys[i])
			}
		}
		c.Done()
	}
	if wholes < 100 {
		t.Errorf("only %d ranges were short", wholes)
	}
}

// Few does not return what was read of a leaf that was changed meanwhile.
func TestFewBesideChange(t *testing.T) {
	if !stall.On {
		t.Skip("needs the tag stalls")
	}
	for _, point := range []string{"few: leaf found", "few: leaf read"} {
		tree, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(3000) {
			tree.Set(k, 0)
		}
		changed := false
		undo := stall.Use(func(at string) {
			if at == point && !changed {
				changed = true
				tree.Set(1005, 1)
			}
		})
		var ks, vs [FewRoom]uint64
		_, _, _, ok := tree.Few(1000, 1010, ks[:], vs[:])
		undo()
		if !changed || ok {
			t.Errorf("%s: changed %t, and Few returns entries: %t", point, changed, ok)
		}
		tree.Close()
	}
}

// Few returns entries that were there at one time: one key has an odd value only while another
// is there.
func TestFewBesideWriters(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	const low, high = 1000, 1010
	for k := range uint64(3000) {
		if k != high {
			tree.Set(k, 0)
		}
	}
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		for n := uint64(0); n < uint64(seed.Times(40_000, 400_000)); n += 2 {
			tree.Set(high, n)
			tree.Set(low, n+1)
			tree.Set(low, n+2)
			tree.Delete(high)
		}
	}()
	read, could := 0, 0
	for ; !done.Load(); read++ {
		var ks, vs [FewRoom]uint64
		first, n, _, ok := tree.Few(low, high, ks[:], vs[:])
		if !ok {
			continue
		}
		could++
		if keys := ks[first:n]; keys[0] != low || vs[first]%2 == 1 && keys[len(keys)-1] != high {
			t.Fatalf("%d has value %d, and there are %d", keys[0], vs[first], keys)
		}
	}
	t.Logf("%d of %d reads", could, read)
}
