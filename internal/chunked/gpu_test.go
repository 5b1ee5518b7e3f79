package chunked

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// onGPU returns the machine's GPU, or skips.
func onGPU(t testing.TB) device.Device {
	t.Helper()
	dev, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// The model test on a real GPU. PANDO_SEEDS=200 takes that many batches.
func TestModelOnGPU(t *testing.T) {
	dev := onGPU(t)
	for name, flat := range map[string]int{"leaf by leaf": -1, "flat": 1, "by size": 0} {
		t.Run(name+", 64 bits", func(t *testing.T) { testModelOn[uint64](t, dev, seed.Of(t), Options{Flat: flat}, 4*rounds(t)) })
		t.Run(name+", 32 bits", func(t *testing.T) { testModelOn[uint32](t, dev, seed.Of(t), Options{Flat: flat}, 4*rounds(t)) })
	}
}

// The steps of a batch are passed in their order, each once, whichever way it
// is taken.
func TestWatchedSteps(t *testing.T) {
	for _, flat := range []int{-1, 0} {
		r := newRig[uint64](t, ptx.New(ptx.Seed(seed.Of(t)), ptx.Memory(64<<20)), Options{Room: 16 << 20})
		r.tree.SetFlat(flat)
		var steps []Step
		r.tree.Watch(func(s Step) error {
			steps = append(steps, s)
			return nil
		})
		r.apply([]uint64{3, 1, 2}, []uint64{30, 10, 20}, []op.Kind{op.Set, op.Set, op.Set})
		if fmt.Sprint(steps) != "[sort probe effects plan write table]" {
			t.Errorf("SetFlat(%d): steps %v", flat, steps)
		}
		r.tree.Watch(func(Step) error { return device.ErrLost })
		if err := r.tree.Apply(&Ops{N: 1, Keys: r.put(make([]byte, 8)), Vals: r.put(make([]byte, 8)), Kind: op.Set}); !errors.Is(err, device.ErrLost) {
			t.Errorf("a watcher's error becomes %v", err)
		}
		must(t, r.tree.Close())
	}
}

// BenchmarkChunked times batches of random sets onto 64M pairs, and searches, on
// a GPU: Gops/s is billions of operations a second, best of all rounds.
//
//	./run.sh test internal/chunked -test.run '^$' -test.bench Chunked
func BenchmarkChunked(b *testing.B) {
	dev := onGPU(b)
	const entries = 64 << 20
	tree, err := New[uint64](dev, Options{})
	ok(b, err)
	defer tree.Close()
	keys := make([]uint64, entries)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	st := tree.Stream()
	room := func(bytes int) device.Ptr {
		at, err := dev.Alloc(bytes)
		ok(b, err)
		return at
	}
	fresh, scratch, vals, bits := room(8*entries), room(8*entries), room(8*entries), room(entries/8)
	ok(b, errors.Join(st.CopyIn(fresh, arena.Bytes(keys)), st.CopyDevice(vals, fresh, 8*entries), st.Synchronize()))
	set := func(n int) error {
		return tree.Apply(&Ops{N: n, Keys: scratch, Vals: vals, Kind: op.Set})
	}
	ok(b, errors.Join(st.CopyDevice(scratch, fresh, 8*entries), set(entries)))
	for _, n := range []int{1 << 10, 64 << 10, 1 << 20, 16 << 20, entries} {
		for name, flat := range map[string]int{"leaf by leaf": -1, "flat": 0} {
			b.Run(fmt.Sprintf("Apply/%dK/%s", n>>10, name), func(b *testing.B) {
				tree.SetFlat(flat)
				timeWork(b, n, func() error { return errors.Join(st.CopyDevice(scratch, fresh, 8*n), st.Synchronize()) },
					func() error { return errors.Join(set(n), st.Synchronize()) })
			})
		}
	}
	b.Run("Find", func(b *testing.B) {
		timeWork(b, entries, func() error { return nil },
			func() error { return errors.Join(tree.Find(fresh, entries, vals, bits), st.Synchronize()) })
	})
}

func ok(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// timeWork reports the best of all rounds, by the host's clock.
func timeWork(b *testing.B, n int, prepare, work func() error) {
	b.Helper()
	best := time.Duration(1 << 62)
	for b.Loop() {
		ok(b, prepare())
		start := time.Now()
		ok(b, work())
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(n)/float64(best.Nanoseconds()), "Gops/s")
	b.ReportMetric(float64(best.Nanoseconds())/1e3, "best-µs")
}
