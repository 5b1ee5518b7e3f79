package cuart

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// Wherever memory fails, the tree is as it was, and the same batch succeeds the next
// time, on a table that may not have grown; Close gives everything back.
func TestMemoryFails(t *testing.T) {
	first := seed.Of(t)
	plain := Options{Room: 32 << 20, Seed: 1, HostRoom: -1}
	long := Options{Room: 32 << 20, Seed: 1, Longest: 40, Long: LongHost}
	small := Options{Room: 64 << 10, Seed: 1, HostRoom: 1 << 20} // leaves move to the host
	for _, c := range []struct {
		op   faulty.Op
		opts Options
	}{
		{faulty.Alloc, plain}, {faulty.Grow, plain}, {faulty.ReserveHost, long}, {faulty.ReserveHost, small}, {faulty.Grow, small},
	} {
		step := seed.Step(4)
		for at := 1 + int(first%uint64(step)); failOnce(t, first, c.op, at, c.opts) && !t.Failed(); at += step {
		}
	}
}

// failOnce makes one operation fail while batches run, and reports whether it came to
// that.
func failOnce(t *testing.T, first uint64, op faulty.Op, at int, opts Options) bool {
	t.Helper()
	inner := ptx.New(ptx.Seed(first))
	dev := faulty.New(inner, faulty.Plan{Op: op, At: at})
	tree, err := New(dev, opts)
	if err == nil {
		r := &rig{t: t, dev: inner, tree: tree, model: map[string]uint64{}} // what the batch itself takes does not count
		r.tree.perSlot, r.tree.portion = 1, 100
		if table, err := tree.newTable(1); err == nil { // so that it grows
			must(t, tree.run.Stream.Synchronize())
			must(t, dev.Free(tree.table))
			tree.table, tree.place.bits = table, 1
		}
		rng := rand.New(rand.NewPCG(first, 3))
		for _, n := range []int{30, 300} {
			keys, vals, kinds := r.batch(rng, n)
			if err := r.try(keys, vals, kinds, 0); err != nil {
				r.check()
				if err := r.try(keys, vals, kinds, 0); !isShort(err) || opts.Room > 1<<20 { // which may be too little
					must(t, err)
				}
			}
			r.check()
		}
		must(t, tree.Close())
	}
	free, err := inner.FreeBytes()
	must(t, err)
	if live := dev.Live(); live != 0 || free != inner.Info().TotalBytes {
		t.Errorf("%v %d fails: %d things are left on the device, %d bytes of %d are free", op, at, live, free, inner.Info().TotalBytes)
	}
	failed := dev.Count(op) >= at
	dev.Close()
	return failed
}

// A tree that has reached its limit says so, answers, and takes a batch for which
// there is room.
func TestLimit(t *testing.T) {
	first := seed.Of(t)
	dev := ptx.New(ptx.Seed(first))
	r := newRig(t, dev, Options{Room: 256 << 10, HostRoom: -1, Seed: 1})
	rng := rand.New(rand.NewPCG(first, 4))
	set := func(n int) error {
		keys, vals, kinds := make([]string, n), make([]uint64, n), make([]op.Kind, n)
		for i := range keys {
			keys[i], vals[i], kinds[i] = fmt.Sprintf("%x", rng.Uint64()), rng.Uint64(), op.Set
		}
		return r.try(keys, vals, kinds, 0)
	}
	var err error
	for err == nil {
		err = set(100)
		r.check()
	}
	if !errors.Is(err, op.ErrLimit) && !errors.Is(err, device.ErrOutOfMemory) {
		t.Fatalf("over the limit: %v", err)
	}
	if len(r.model) < 1000 {
		t.Errorf("256 KiB are full with %d entries", len(r.model))
	}
	some := slices.Sorted(maps.Keys(r.model))[:600]
	r.apply(some, make([]uint64, len(some)), slices.Repeat([]op.Kind{op.Delete}, len(some)), 0)
	must(t, set(50))
	r.check()
	must(t, r.tree.Close())
	must(t, dev.Close())
}

// A device that cannot let memory grow has pools of one size.
func TestMemoryOfOneSize(t *testing.T) {
	first := seed.Of(t)
	inner := ptx.New(ptx.Seed(first), ptx.Memory(64<<20))
	r := newRig(t, fixedMemory{inner}, Options{Room: 8 << 20, Seed: 1})
	rng := rand.New(rand.NewPCG(first, 5))
	for range 3 {
		keys, vals, kinds := r.batch(rng, 100)
		r.apply(keys, vals, kinds, 0)
	}
	must(t, r.tree.Close())
	must(t, inner.Close())
}

type fixedMemory struct{ device.Device }

func (fixedMemory) Reserve(int64) (device.Range, error) { return nil, device.ErrUnsupported }
