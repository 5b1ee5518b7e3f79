package chunked

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// set sets n random keys, and returns Apply's error.
func (r *rig[C]) set(rng *rand.Rand, n int) error {
	r.t.Helper()
	keys, vals := make([]C, n), make([]C, n)
	for i := range keys {
		keys[i], vals[i] = C(rng.Uint64()), C(rng.Uint64())
	}
	ks, vs := r.put(arena.Bytes(keys)), r.put(arena.Bytes(vals))
	err := r.tree.Apply(&Ops{N: n, Keys: ks, Vals: vs, Kind: op.Set})
	if err == nil {
		for i, k := range keys {
			r.model[k] = vals[i]
		}
	}
	must(r.t, r.tree.Wait())
	must(r.t, r.dev.Free(ks))
	must(r.t, r.dev.Free(vs))
	return err
}

// Wherever memory fails, once or so often that nobody gets by with less, the tree is
// as it was, and the same batch succeeds a little later; Close gives everything back.
func TestMemoryFails(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	for _, flat := range []int{-1, 1} {
		for _, snapshot := range []bool{false, true} {
			for _, op := range []faulty.Op{faulty.Alloc, faulty.Grow} {
				for _, times := range []int{1, 2} {
					step := seed.Step(6)
					for at := 1 + rng.IntN(step); failing(t, first, flat, snapshot, faulty.Plan{Op: op, At: at, Times: times}) && !t.Failed(); at += step {
					}
				}
			}
		}
	}
}

// failing makes operations fail while batches run, and reports whether it came to
// that.
func failing(t *testing.T, first uint64, flat int, snapshot bool, plan faulty.Plan) bool {
	t.Helper()
	inner := ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long()))
	dev := faulty.New(inner, plan)
	tree, err := New[uint64](dev, Options{Flat: flat, Room: 32 << 20})
	if err != nil { // it failed before there was a tree
		nothingLeft(t, inner, dev)
		return true
	}
	r := &rig[uint64]{t, inner, tree, map[uint64]uint64{}} // what the batch itself takes does not count
	rng := rand.New(rand.NewPCG(first, 3))
	var was map[uint64]uint64
	var snap *Snapshot[uint64]
	for _, n := range []int{30, 300} {
		if snapshot {
			snap, was = tree.Snapshot(), maps.Clone(r.model)
		}
		state := rng.Uint64()
		again := func() error { return r.set(rand.New(rand.NewPCG(state, 0)), n) }
		err := again()
		for i := 0; i < plan.Times && err != nil; i++ {
			r.check()
			err = again()
		}
		must(t, err)
		r.check()
		if snap != nil {
			checkVersion(t, tree, snap.b, was)
			must(t, snap.Release())
		}
	}
	came := dev.Count(plan.Op) >= plan.At
	must(t, tree.Close())
	nothingLeft(t, inner, dev)
	return came
}

// nothingLeft looks whether a device has all of its memory back, and closes it.
func nothingLeft(t *testing.T, inner device.Device, dev *faulty.Device) {
	t.Helper()
	free, err := inner.FreeBytes()
	must(t, err)
	if live := dev.Live(); live != 0 || free != inner.Info().TotalBytes {
		t.Errorf("%d things are left on the device, %d bytes of %d are free", live, free, inner.Info().TotalBytes)
	}
	dev.Close()
}

// A tree that has reached its limit says so, answers, and takes a batch for which
// there is room.
func TestLimit(t *testing.T) {
	first := seed.Of(t)
	for _, flat := range []int{-1, 0} {
		dev := ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long()))
		r := newRig[uint64](t, dev, Options{Flat: flat, Room: 64 << 10})
		rng := rand.New(rand.NewPCG(first, 4))
		var err error
		for err == nil {
			err = r.set(rng, seed.Size(300, 150))
			r.check()
		}
		if !errors.Is(err, op.ErrLimit) && !errors.Is(err, device.ErrOutOfMemory) {
			t.Fatalf("over the limit: %v", err)
		}
		if len(r.model) < 1000 {
			t.Errorf("64 KiB are full with %d entries", len(r.model))
		}
		var keys []uint64
		var kinds []op.Kind
		for k := range r.model {
			if keys, kinds = append(keys, k), append(kinds, op.Delete); len(keys) == 800 {
				break
			}
		}
		r.apply(keys, make([]uint64, len(keys)), kinds)
		must(t, r.set(rng, 100))
		r.check()
		must(t, r.tree.Close())
	}
}

// A batch for which there is just room succeeds; with room for one leaf, or chunk,
// less it is refused, and the tree is as it was.
func TestOneSlotShort(t *testing.T) {
	first := seed.Of(t)
	for _, flat := range []int{-1, 1} {
		work := func(room int64) (need int64, err error) {
			r := newRig[uint64](t, ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), Options{Flat: flat, Room: room})
			defer r.dev.Close()
			rng := rand.New(rand.NewPCG(first, 5))
			for _, n := range []int{100, 400} {
				if err = r.set(rng, n); err != nil {
					break
				}
			}
			r.check()
			t := r.tree
			need = int64(t.leaves.next)*int64(t.leaves.slot) + int64(t.chunks.next)*int64(t.chunks.slot)
			must(r.t, t.Close())
			return need, err
		}
		need, err := work(32 << 20)
		must(t, err)
		if _, err := work(need); err != nil {
			t.Errorf("flat %d: %d bytes are needed, and with these there is %v", flat, need, err)
		}
		if _, err := work(need - 1); !errors.Is(err, op.ErrLimit) {
			t.Errorf("flat %d: %d bytes are needed, and with one less there is %v", flat, need, err)
		}
	}
}

// A device that is lost while a snapshot is held, at any operation, has nothing
// of the tree left when that is closed. PANDO_LONG=1000 tries all of them.
func TestLostWithASnapshot(t *testing.T) {
	first := seed.Of(t)
	work := func(dev *faulty.Device) error {
		tree, err := New[uint64](dev, Options{Flat: -1, Room: 32 << 20})
		if err != nil {
			return err
		}
		defer tree.Close()
		for n := range 3 {
			keys, err := dev.Alloc(8 * 40)
			if err != nil {
				return err
			}
			defer dev.Free(keys)
			if err := tree.run.Stream.Fill(keys, uint32(n), 8*40); err != nil {
				return err
			}
			if err := tree.Apply(&Ops{N: 40, Keys: keys, Vals: keys, Kind: op.Set}); err != nil {
				return err
			}
			tree.Snapshot() // each version has one
		}
		return nil
	}
	count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	must(t, work(count))
	all := count.Count(faulty.Any)
	step := seed.Stride(all, 12, 20)
	for at := 1 + int(first%uint64(step)); at <= all; at += step {
		inner := ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long()))
		dev := faulty.New(inner, faulty.Plan{At: at, Lose: true})
		if work(dev) == nil {
			t.Errorf("operation %d failed, and nobody was told", at)
		}
		nothingLeft(t, inner, dev)
	}
}
