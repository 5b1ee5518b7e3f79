package bplus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// Snapshots between which a few keys change, so that lines are kept and not
// leaves, stay as they were, whichever of them are closed first.
func TestSnapshotsOfFewChanges(t *testing.T) {
	t.Run("32", func(t *testing.T) { snapshotsOfFewChanges[uint32](t) })
	t.Run("64", func(t *testing.T) { snapshotsOfFewChanges[uint64](t) })
}

func snapshotsOfFewChanges[C Code](t *testing.T) {
	hasty(t)
	rng := seed.Rand(t)
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	const space = 1 << 16
	model := map[C]C{}
	set := func(k C) {
		v := C(rng.Uint64())
		if _, _, err := tree.Set(k, v); err != nil {
			t.Fatal(err)
		}
		model[k] = v
	}
	for range 4000 {
		set(C(rng.Uint64N(space)))
	}
	type taken struct {
		s     *Snapshot[C]
		model map[C]C
	}
	var all []taken
	for round := range seed.Times(60, 200) {
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, taken{s, maps.Clone(model)})
		at := rng.Uint64N(space)
		for range rng.IntN(12) {
			k := C((at + rng.Uint64N(1<<rng.IntN(17))) % space)
			if rng.IntN(3) > 0 {
				set(k)
				continue
			}
			tree.Delete(k)
			delete(model, k)
		}
		switch rng.IntN(12) {
		case 0:
			applyBoth(t, tree, model, rng, rng.IntN(60), space, 1)
		case 1:
			lo := C(at)
			if _, err := tree.DeleteRange(lo, lo+40, nil); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(model, func(k, _ C) bool { return k >= lo && k <= lo+40 })
		case 2:
			lo, hi := C(at), C(at+rng.Uint64N(2000))
			if _, err := tree.Transform(lo, hi, nil, len(model), addOne{}, 1); err != nil {
				t.Fatal(err)
			}
			for k := range model {
				if k >= lo && k <= hi {
					model[k]++
				}
			}
		}
		for len(all) > rng.IntN(12) {
			i := rng.IntN(len(all))
			checkView(t, all[i].s, all[i].model, rng)
			all[i].s.Close()
			all = slices.Delete(all, i, i+1)
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		if round%8 == 0 {
			for _, a := range all {
				checkView(t, a.s, a.model, rng)
			}
		}
	}
	for _, a := range all {
		checkView(t, a.s, a.model, rng)
		a.s.Close()
	}
	if n := tree.Kept(); n != 0 {
		t.Errorf("%d bytes are kept without a snapshot", n)
	}
	checkModel(t, tree, model, rng)
}

// addOne is the Changer that adds 1.
type addOne struct{}

func (addOne) Value(v uint64) uint64 { return v + 1 }

func (addOne) Lines(at unsafe.Pointer, lines, width int) {
	for j := range lines {
		for i := 32; i < 64; i += width {
			p := unsafe.Add(at, 64*j+i)
			if width == 4 {
				*(*uint32)(p)++
			} else {
				*(*uint64)(p)++
			}
		}
	}
}

// A change of one key after a snapshot keeps lines, one of a whole leaf keeps
// that, in the place of the lines.
func TestSnapshotKeepsLittle(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for k := range uint64(200) {
		tree.Set(k*10, k)
	}
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if tree.Set(500, 1); tree.Kept() != pieceBytes {
		t.Errorf("one key: %d bytes are kept", tree.Kept())
	}
	if tree.Set(500, 2); tree.Kept() != pieceBytes {
		t.Errorf("the same again: %d bytes are kept", tree.Kept())
	}
	if _, err := tree.DeleteRange(0, 1000, nil); err != nil || tree.Kept() != int64(tree.leaves.pool.SlotBytes()) {
		t.Errorf("half a leaf: %d bytes are kept, %v", tree.Kept(), err)
	}
}

// A Set that would keep more than the limit allows fails, and the tree and the
// snapshot are as they were.
func TestSnapshotKeepsWithinLimit(t *testing.T) {
	rng := seedless()
	for room := int64(0); room < 60; room += 7 {
		tree, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[uint64]uint64{}
		for range 3000 {
			k := rng.Uint64N(1 << 20)
			tree.Set(k, k)
			model[k] = k
		}
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		old := maps.Clone(model)
		tree.SetLimit(tree.Bytes() + room*pieceBytes)
		failed := 0
		for range 300 {
			k := rng.Uint64N(1 << 20)
			if _, _, err := tree.Set(k, 5); err != nil {
				failed++
				continue
			}
			model[k] = 5
			if tree.Bytes() > tree.limit.Load() {
				t.Fatalf("%d bytes, the limit is %d", tree.Bytes(), tree.limit.Load())
			}
		}
		if failed == 0 {
			t.Errorf("room for %d pieces is enough for 300 keys", room)
		}
		checkView(t, s, old, rng)
		checkModel(t, tree, model, rng)
		s.Close()
		tree.Close()
	}
}

// BenchmarkSetAfterSnapshot is a new key that is set while a snapshot of the
// moment before the first of them is kept, and without one.
func BenchmarkSetAfterSnapshot(b *testing.B) {
	const entries = 4 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	tree, err := New[uint64](0)
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	for range entries {
		tree.Set(rng.Uint64(), 1)
	}
	for _, with := range []bool{false, true} {
		for _, n := range []int{20_000, 64_000, 256_000} {
			name := map[bool]string{false: "without", true: "after"}[with]
			b.Run(fmt.Sprint(name, "-", n), func(b *testing.B) {
				b.ReportAllocs()
				keys := make([]uint64, n)
				kept := int64(0)
				for range b.N {
					b.StopTimer()
					for i := range keys {
						keys[i] = rng.Uint64()
					}
					var s *Snapshot[uint64]
					if with {
						s, _ = tree.Snapshot()
					}
					b.StartTimer()
					for _, k := range keys {
						tree.Set(k, k)
					}
					b.StopTimer()
					kept += tree.Kept()
					if with {
						s.Close()
					}
					for _, k := range keys {
						tree.Delete(k)
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/Set")
				b.ReportMetric(float64(kept)/float64(b.N*n), "kept-B/Set")
			})
		}
	}
}

// A state that has got all lines of a leaf, from snapshots that were closed, is
// still none that the leaf may be split with: it does not know which leaf was next.
func TestSnapshotsJoinAllLines(t *testing.T) {
	const n = 250
	keys := func(lo int, ks, vs []uint64) {
		for i := range ks {
			ks[i], vs[i] = uint64(lo+i)*10+10, uint64(lo+i)
		}
	}
	tree, err := Load[uint64](n, keys, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := map[uint64]uint64{}
	for i := range n {
		model[uint64(i)*10+10] = uint64(i)
	}
	var all []*Snapshot[uint64]
	for part := range 4 {
		s, _ := tree.Snapshot()
		all = append(all, s)
		for i := part * 63; i < min((part+1)*63, n); i++ {
			tree.Set(uint64(i)*10+10, 1000)
		}
	}
	for _, s := range []int{3, 2, 1} {
		all[s].Close()
	}
	s := all[0]
	checkView(t, s, model, seedless())
	tree.Set(10, 7)
	for i := range uint64(20) {
		tree.Set(i*100+5, 1)
	}
	checkView(t, s, model, seedless())
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	tree.Close()
}
