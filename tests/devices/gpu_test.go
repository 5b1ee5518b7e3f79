package devices_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// sameAsCPU asks an index on a GPU and one on the CPU the same.
func sameAsCPU[K pando.Key, V comparable](t *testing.T, keys []K, vals []V, asked []K, opts ...pando.Option) {
	t.Helper()
	sameOn(t, pando.GPU(0), keys, vals, asked, append(opts, pando.On(pando.GPU(0)))...)
}

// sameOn asks an index that options put on a device, and one on the CPU.
func sameOn[K pando.Key, V comparable](t *testing.T, device pando.Device, keys []K, vals []V, asked []K, opts ...pando.Option) {
	t.Helper()
	g, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if s := g.Stats(); s.Device != device {
		t.Fatalf("on %v, not on %v: %s", s.Device, device, s.Reason)
	}
	c, err := pando.Freeze(keys, vals, append(opts, pando.On(pando.CPU))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	compareIndexes(t, g, c, asked)
	if s := g.Stats(); s.Device != device {
		t.Errorf("the GPU was given up: %s", s.Reason)
	}
}

func compareIndexes[K pando.Key, V comparable](t *testing.T, g, c *pando.Frozen[K, V], asked []K) {
	t.Helper()
	n := len(asked)
	gv, cv := make([]V, n), make([]V, n)
	gf, cf := make([]bool, n), make([]bool, n)
	if gh, ch := g.GetBatch(asked, gv, gf), c.GetBatch(asked, cv, cf); gh != ch {
		t.Errorf("%d hits, the CPU has %d", gh, ch)
	}
	gr, cr := make([]int, n), make([]int, n)
	g.RankBatch(asked, gr)
	c.RankBatch(asked, cr)
	for i := range asked {
		if gv[i] != cv[i] || gf[i] != cf[i] || gr[i] != cr[i] {
			t.Fatalf("key %v: %v, %v, rank %d; the CPU has %v, %v, rank %d", asked[i], gv[i], gf[i], gr[i], cv[i], cf[i], cr[i])
		}
	}
	if gh, ch := g.GetBatch(asked, gv, nil), c.GetBatch(asked, cv, nil); gh != ch {
		t.Errorf("found nil: %d hits, the CPU has %d", gh, ch)
	}
	hi := append(append([]K(nil), asked[n/2:]...), asked[:n/2]...)
	g.CountBatch(asked, hi, gr)
	for i := range asked {
		if want := c.Count(asked[i], hi[i]); gr[i] != want {
			t.Fatalf("%d entries from %v to %v, on the CPU %d", gr[i], asked[i], hi[i], want)
		}
	}
	compareRanges(t, g.RangeBatch(asked, hi, 3), c.RangeBatch(asked, hi, 3))
}

func compareRanges[K pando.Key, V comparable](t *testing.T, a, b *pando.Ranges[K, V]) {
	t.Helper()
	if a.Len() != b.Len() {
		t.Fatalf("%d ranges, on the CPU %d", a.Len(), b.Len())
	}
	for i := range b.Len() {
		ak, av := a.At(i)
		bk, bv := b.At(i)
		if len(ak) != len(bk) {
			t.Fatalf("range %d has %d entries, on the CPU %d", i, len(ak), len(bk))
		}
		for j := range ak {
			if ak[j] != bk[j] || av[j] != bv[j] {
				t.Fatalf("range %d, entry %d: %v %v, on the CPU %v %v", i, j, ak[j], av[j], bk[j], bv[j])
			}
		}
	}
}

func TestGPUGivesWhatTheCPUGives(t *testing.T) {
	start := seed.Of(t)
	rng := rand.New(rand.NewPCG(start, 0))
	run := func(t *testing.T) {
		n, ask := seed.Size(700, 3000), seed.Size(400, 5000)
		if seed.RaceDetector {
			n, ask = 500, 200
		}
		ints, u32s, floats := make([]int64, n), make([]uint32, n), make([]float64, n)
		v64, v32, rows := make([]uint64, n), make([]float32, n), make([]string, n)
		for i := range n {
			ints[i], u32s[i], floats[i] = int64(rng.IntN(2*n))-int64(n), rng.Uint32(), rng.NormFloat64()
			v64[i], v32[i], rows[i] = rng.Uint64(), rng.Float32(), strings.Repeat("x", i%5)
		}
		u32s[0], u32s[1] = 0, ^uint32(0)
		ai, au, af := make([]int64, ask), make([]uint32, ask), make([]float64, ask)
		for i := range ask {
			ai[i], au[i], af[i] = int64(rng.IntN(3*n))-int64(n), u32s[rng.IntN(n)]+uint32(rng.IntN(2)), floats[rng.IntN(n)]
		}
		au[5], au[6] = 0, ^uint32(0)
		sameAsCPU(t, ints, v64, ai)                            // pairs
		sameAsCPU(t, ints, v64, ai, pando.Layout(pando.Apart)) // column
		sameAsCPU(t, ints, v32, ai)                            // column of another width
		sameAsCPU(t, ints, rows, ai)                           // Go memory
		for _, layout := range []pando.LayoutKind{pando.Blocked, pando.Compressed} {
			sameAsCPU(t, ints, v64, ai, pando.Layout(layout))
			sameAsCPU(t, u32s, v32, au, pando.Layout(layout))
			sameAsCPU(t, floats, v64, af, pando.Layout(layout))
			sameAsCPU(t, ints, rows, ai[:min(500, ask)], pando.Layout(layout))
			sameAsCPU(t, []uint64{}, []uint64{}, []uint64{0, 1, ^uint64(0)}, pando.Layout(layout))
		}
		sameAsCPU(t, u32s, v32, au)
		sameAsCPU(t, u32s, v64, au)
		sameAsCPU(t, floats, v64, af)
		sameAsCPU(t, ints, make([]struct{}, n), ai)
		sameAsCPU(t, []uint64{}, []uint64{}, []uint64{0, 1, ^uint64(0)})
	}
	t.Run("interpreter", func(t *testing.T) {
		indextest.Interpreted(t, start)
		run(t)
	})
	t.Run("cuda", func(t *testing.T) {
		d, err := cuda.Open(0)
		if err != nil {
			t.Skip("no GPU: ", err)
		}
		d.Close()
		run(t)
	})
}

func TestNoGPUIsAnsweredByTheCPU(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
	}{
		{device.ErrNoDriver, "no GPU driver"},
		{device.ErrNoGPU, "no GPU on this machine"},
		{device.ErrOutOfMemory, "GPU not used"},
		{device.ErrLost, "GPU not used"},
	} {
		indextest.UseGPU(t, func(int) (device.Device, error) { return nil, c.err })
		f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.GPU(0)))
		if err != nil {
			t.Fatal(err)
		}
		if s := f.Stats(); s.Device != pando.CPU || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("%v: on %v, %q", c.err, s.Device, s.Reason)
		}
		if v, ok := f.Get(2); v != 5 || !ok {
			t.Errorf("Get(2) = %d, %v", v, ok)
		}
		f.Close()
	}
	indextest.UseGPU(t, func(int) (device.Device, error) { return ptx.New(ptx.Memory(1 << 10)), nil })
	f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.GPU(0)))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Stats(); s.Device != pando.CPU || !strings.Contains(s.Reason, "bytes") {
		t.Errorf("no room: on %v, %q", s.Device, s.Reason)
	}
	f.Close()
}

func TestNoSuchGPU(t *testing.T) {
	indextest.Interpreted(t, 1)
	before := arena.InUse()
	for _, d := range []pando.Device{pando.GPU(1), pando.GPU(-1), pando.Hybrid(1), pando.Hybrid(-1)} {
		if _, err := pando.Freeze([]uint64{1}, []uint64{2}, pando.On(d)); !errors.Is(err, pando.ErrNoDevice) {
			t.Errorf("On(%v): %v", d, err)
		}
	}
	f, err := pando.Freeze([]uint64{1}, []uint64{2}, pando.On(pando.Hybrid(0)))
	if err != nil {
		t.Fatalf("On(hybrid:0): %v", err)
	}
	f.Close()
	if arena.InUse() != before {
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

// Auto leaves small indexes to the CPU, and large ones, too, where it measures
// that the CPU is faster, as it always is beside an interpreter.
func TestAutoMeasures(t *testing.T) {
	if !seed.Long() {
		t.Skip("a large index on the interpreter")
	}
	indextest.Interpreted(t, 1)
	keys := make([]uint32, 1<<20)
	for i := range keys {
		keys[i] = uint32(i) * 3
	}
	on := func(n int) pando.Stats {
		t.Helper()
		f, err := pando.Freeze(keys[:n], keys[:n])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if v, ok := f.Get(6); !ok || v != 6 {
			t.Errorf("Get(6) = %d, %v", v, ok)
		}
		return f.Stats()
	}
	if s := on(1000); s.Device != pando.CPU || !strings.Contains(s.Reason, "small") {
		t.Errorf("a small index is on %v: %s", s.Device, s.Reason)
	}
	indextest.Hasty(t, 300)
	indextest.PreferCPU(t, true)
	if s := on(len(keys)); s.Device != pando.CPU || !strings.Contains(s.Reason, "measured: the CPU alone is faster") || s.DeviceBytes != 0 {
		t.Errorf("a large index is on %v: %s", s.Device, s.Reason)
	}
	t.Setenv("PANDO_DEVICE", "gpu:0")
	if s := on(1000); s.Device != pando.GPU(0) {
		t.Errorf("PANDO_DEVICE=gpu:0: on %v: %s", s.Device, s.Reason)
	}
}
