package chunked

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// hard are the modes for kernels whose blocks wait for each other, as planFew's do.
var hard = map[string][]ptx.Option{
	"weak":           {ptx.Weak(true), ptx.Strict(true)},
	"PCT 3":          {ptx.Weak(true), ptx.Strict(true), ptx.PCT(3)},
	"holders freeze": {ptx.Weak(true), ptx.Strict(true), ptx.FreezeHolders(true)},
}

// fewOps does some small batches of all kinds.
func fewOps(r *rig[uint64], rng *rand.Rand) {
	for _, n := range []int{seed.Size(100, 150), 60, 40} {
		keys, vals, kinds := make([]uint64, n), make([]uint64, n), make([]op.Kind, n)
		for i := range keys {
			keys[i], vals[i], kinds[i] = rng.Uint64N(250), rng.Uint64(), op.Kind(rng.IntN(3))
		}
		r.apply(keys, vals, kinds)
	}
}

// Small batches are right whatever memory may do.
func TestFewHard(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("nothing here runs on several goroutines")
	}
	first := seed.Of(t)
	for name, opts := range hard {
		t.Run(name, func(t *testing.T) {
			for s := first; s < first+uint64(seed.Count(2)); s++ {
				dev := ptx.New(append(opts, ptx.Seed(s), ptx.Steps(1<<26))...)
				r := newRig[uint64](t, dev, Options{Flat: -1, Room: 1 << 20})
				fewOps(r, rand.New(rand.NewPCG(s, 1)))
				must(t, r.tree.Close())
				must(t, errors.Join(dev.Failed(), dev.Close()))
			}
		})
	}
}

// changed is a device whose kernels have another text.
type changed struct {
	device.Device
	old, text string
}

func (c changed) Load(text string) (device.Module, error) {
	return c.Device.Load(strings.ReplaceAll(text, c.old, c.text))
}

// Without the order between the block that plans and those that wait for it some
// seed shows a race.
func TestFewLeftOut(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("nothing here runs on several goroutines")
	}
	first := seed.Of(t)
	for _, part := range []string{"st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"} {
		found := false
		for s := first; s < first+50 && !found; s++ {
			inner := ptx.New(ptx.Weak(true), ptx.Strict(true), ptx.Steps(1<<26), ptx.Seed(s))
			dev := changed{inner, part, part[:3] + "relaxed" + part[len("st.release"):]}
			r := newRig[uint64](t, dev, Options{Flat: -1, Room: 1 << 20})
			keys := make([]uint64, 40)
			for i := range keys {
				keys[i] = uint64(i) * s
			}
			at := r.put(arena.Bytes(keys))
			var f *ptx.Fault
			found = errors.As(r.tree.Apply(&Ops{N: len(keys), Keys: at, Vals: at, Kind: op.Set}), &f) && f.Kind == ptx.Race
			r.tree.Close() // of a device that has failed
			inner.Close()
		}
		if !found {
			t.Errorf("no seed shows that %s is missing", part)
		}
	}
}

// What writes a batch is queued before it is known what it needs; where that was in
// vain, since there is not enough room or something is freed, it is queued again.
func TestAhead(t *testing.T) {
	start := seed.Of(t)
	rng := rand.New(rand.NewPCG(start, 0))
	const leaves = 20
	for _, c := range []struct {
		name  string
		room  int // leaves that are free; each of them gets one more
		entry int // of a leaf that is deleted, not split; 0 for none
		plans int // how often it is queued
	}{{"plenty", leaves, 0, 1}, {"one short", leaves - 1, 0, 2}, {"hardly any", 1, 0, 1}, {"freed", leaves, 1, 2}} {
		for _, few := range []int{0, kernel.FewOps} {
			if !seed.Long() && rng.IntN(2) > 0 {
				continue
			}
			r := newRig[uint64](t, ptx.New(ptx.Seed(start)), Options{Room: 16 << 20})
			r.tree.SetFlat(0)
			first := between(0, 2*leaves*kernel.LeafFill, 0)
			r.apply(first, first, slices.Repeat([]op.Kind{op.Set}, len(first)))
			r.tree.SetFlat(-1)
			r.tree.leaves.room = r.tree.leaves.next - r.tree.leaves.list.N + c.room
			r.tree.few = few
			var keys []uint64
			var kinds []op.Kind
			for l := range leaves {
				for e := range 5 {
					keys, kinds = append(keys, keyOf(l*kernel.LeafFill+e)+1), append(kinds, op.Set)
				}
			}
			for e := range kernel.LeafFill * c.entry {
				keys, kinds = append(keys, keyOf(leaves*kernel.LeafFill+e)), append(kinds, op.Delete)
			}
			plans := 0
			r.tree.Watch(func(s Step) error {
				if s == StepPlan {
					plans++
				}
				return nil
			})
			r.apply(keys, keys, kinds)
			if plans != c.plans {
				t.Errorf("%s: planned %d times, want %d", c.name, plans, c.plans)
			}
			must(t, r.tree.Close())
		}
	}
}
