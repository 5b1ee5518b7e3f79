package index_test

import (
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

var (
	onCPU    = index.Device{Kind: index.CPU}
	onGPU    = index.Device{Kind: index.GPU}
	onHybrid = index.Device{Kind: index.Hybrid}
)

// evenKeys returns the keys 0, 2, 4 and so on, which are values, too.
func evenKeys(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = 2 * uint64(i)
	}
	return keys
}

// build builds an index that the test releases.
func build(t *testing.T, keys []uint64, on index.Device, room int64) *index.Index {
	t.Helper()
	ix, err := index.Build(order.KeysOf(keys), index.KeyTypeOf[uint64](), index.ColumnOf(keys), index.ValueTypeOf[uint64](), index.Config{Device: on, Room: room, Layout: layout.Auto}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Release() })
	return ix
}

// An index that has less device memory than it needs keeps there what fits:
// all, its inner levels, some of them, or nothing.
func TestDeviceMemory(t *testing.T) {
	indextest.Quiet(t)
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 100)
	keys := evenKeys(5000)
	c := build(t, keys, onCPU, 0)
	image := index.ImageOf(c)
	depth := image.Depth()
	for _, on := range []index.Device{onGPU, onHybrid} {
		for levels := range depth + 2 {
			keep := exec.Keep{Last: levels}
			if on == onHybrid && levels > depth {
				keep.Last = depth // leaves are the CPU's
			}
			ix := build(t, keys, on, exec.Keep{Last: levels}.Need(&image))
			s, want := ix.Stats(), on
			switch {
			case levels == 0:
				want, keep = onCPU, exec.Keep{}
			case keep.Last <= depth:
				want = onHybrid
			}
			if s.Device != want || s.DeviceBytes != keep.Size(&image) {
				t.Errorf("%v, room for %d of %d levels: on %v, %d bytes there, want %v, %d: %s", on, levels, depth, s.Device, s.DeviceBytes, want, keep.Size(&image), s.Reason)
			}
			same(t, ix, c)
		}
	}
}

// same asks two indexes the same.
func same(t *testing.T, a, b *index.Index) {
	t.Helper()
	asked := make([]uint64, 300)
	for i := range asked {
		asked[i] = uint64(i * 37)
	}
	keys := order.KeysOf(asked)
	av, bv, ar, br := make([]uint64, len(asked)), make([]uint64, len(asked)), make([]int, len(asked)), make([]int, len(asked))
	if ah, bh := a.GetBatch(keys, index.ColumnOf(av), nil), b.GetBatch(keys, index.ColumnOf(bv), nil); ah != bh {
		t.Errorf("%d hits, want %d", ah, bh)
	}
	a.Engine.Rank(keys, ar)
	b.Engine.Rank(keys, br)
	for i := range asked {
		if av[i] != bv[i] || ar[i] != br[i] {
			t.Fatalf("key %d: %d, rank %d; want %d, rank %d", asked[i], av[i], ar[i], bv[i], br[i])
		}
	}
}

// Stats says where batches run, and why.
func TestReasons(t *testing.T) {
	indextest.Quiet(t)
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 100)
	keys := evenKeys(3000)
	says := func(ix *index.Index, on index.Device, words ...string) {
		t.Helper()
		s := ix.Stats()
		for _, w := range words {
			if !strings.Contains(s.Reason, w) {
				t.Errorf("%q does not say %q", s.Reason, w)
			}
		}
		if s.Device != on || (s.DeviceBytes > 0) != (on != onCPU) {
			t.Errorf("on %v, not on %v, with %d bytes there: %s", s.Device, on, s.DeviceBytes, s.Reason)
		}
	}
	says(build(t, keys, onGPU, 0), onGPU, "asked for")

	rows, err := index.Build(order.KeysOf(keys), index.KeyTypeOf[uint64](), index.ColumnOf(make([][3]uint64, len(keys))), index.ValueTypeOf[[3]uint64](), index.Config{Device: onGPU, Layout: layout.Auto}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	says(rows, onGPU, "asked for; the host gathers values")

	ix := build(t, keys, onHybrid, 0)
	image := index.ImageOf(ix)
	depth := image.Depth()
	use := func(s exec.Split) {
		t.Helper()
		if err := index.UsePlan(ix, exec.Plan{Split: s, Bucket: 1000, Overlap: flow.DoubleBuffered}); err != nil {
			t.Fatal(err)
		}
	}
	use(exec.Split{Lower: depth})
	says(ix, onHybrid, "the GPU holds 4 of 4 inner levels", "the CPU the rest")
	use(exec.Split{Upper: 1, Share: 0.5, Lower: depth})
	says(ix, onHybrid, "the GPU holds 4 of 4 inner levels", "the CPU takes the first 1.5 of them")
	index.SetLeast(ix, 4096)
	says(ix, onHybrid, "measured", "faster", "4096 keys")

	says(build(t, keys, onGPU, exec.Keep{Last: 2}.Need(&image)), onHybrid, "the GPU holds 2 of 4 inner levels")
	says(build(t, keys, onHybrid, 1000), onCPU, "GPU not used", "1000 are free")
	says(build(t, keys[:2], onHybrid, 1000), onCPU, "GPU not used", "1000 are free")

	indextest.PreferCPU(t, true) // the interpreter is slower
	says(build(t, keys, onHybrid, 0), onCPU, "measured", "the CPU alone is faster")

	indextest.UseGPU(t, func(int) (device.Device, error) { return nil, device.ErrNoDriver })
	says(build(t, keys, onHybrid, 0), onCPU, "no GPU driver")
}

// A device's name is read as it is written, and nothing else is a device.
func TestParseDevice(t *testing.T) {
	for _, d := range []index.Device{{}, onCPU, onGPU, {Kind: index.GPU, Ordinal: 7}, onHybrid, {Kind: index.Hybrid, Ordinal: 3}} {
		for _, name := range []string{d.String(), " " + strings.ToUpper(d.String()) + " "} {
			if got, err := index.ParseDevice(name); err != nil || got != d {
				t.Errorf("%q: %v, %v", name, got, err)
			}
		}
	}
	for name, want := range map[string]index.Device{"": {}, " ": {}, "gpu": onGPU, "hybrid": onHybrid} {
		if got, err := index.ParseDevice(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"cpu:0", "auto:1", "gpu:", "gpu:-1", "gpu:x", "tpu", ":0", "hybrid:0:1"} {
		if got, err := index.ParseDevice(name); index.CauseOf(err) != index.ErrNoDevice {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}
