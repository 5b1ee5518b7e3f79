package devices_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// sums compares sums of values, over some ranges and over all, and adds to values.
func (m *treeModel) sums() {
	m.t.Helper()
	lo, hi := []uint64{0, m.key(), m.key()}, []uint64{math.MaxUint64, m.key(), m.key()}
	if m.rng.IntN(2) == 0 {
		n, err := pando.Transform(m.tree, lo[1], hi[1], pando.Add[uint64](3))
		if want := sumOf(m.has, lo[1], hi[1]).Count; err != nil || n != want {
			m.t.Fatalf("Transform: %d, %v, want %d", n, err, want)
		}
		for k := range m.has {
			if k >= lo[1] && k <= hi[1] {
				m.has[k] += 3
			}
		}
	}
	out := make([]pando.Summary[uint64], len(lo))
	pando.AggregateBatch(m.tree, lo, hi, out)
	for i := range lo {
		want := sumOf(m.has, lo[i], hi[i])
		if got := pando.Aggregate(m.tree, lo[i], hi[i]); !sameSum(got, want) || !sameSum(out[i], want) {
			m.t.Fatalf("from %d to %d: %+v, in a batch %+v, want %+v", lo[i], hi[i], got, out[i], want)
		}
	}
}

func sumOf(has map[uint64]uint64, lo, hi uint64) (s pando.Summary[uint64]) {
	for k, v := range has {
		if k < lo || k > hi {
			continue
		}
		if s.Count++; s.Count == 1 {
			s.Min, s.Max = v, v
		}
		s.Sum, s.Min, s.Max = s.Sum+v, min(s.Min, v), max(s.Max, v)
	}
	return s
}

// sameSum compares all but means.
func sameSum(a, b pando.Summary[uint64]) bool {
	a.Mean, b.Mean = 0, 0
	return a == b
}

// Whatever operation fails, or loses the device, sums and histograms of an index that
// does not change are the same, and nothing is left on the device. PANDO_LONG=1000 lets
// each operation fail in turn.
func TestSumsSurviveTheirGPU(t *testing.T) {
	indextest.Quiet(t)
	indextest.Hasty(t, 64)
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 3))
	keys, vals := make([]uint64, 1500), make([]float64, 1500)
	for i := range keys {
		keys[i], vals[i] = uint64(i)*2, rng.NormFloat64()
	}
	lo, hi := []uint64{0, 1, 700, 9}, []uint64{math.MaxUint64, 1, 2901, 3}
	type answers struct {
		sums   [8]pando.Summary[float64]
		counts [4][3]int // of histograms
	}
	for _, l := range []pando.LayoutKind{pando.Pairs, pando.Compressed} {
		ask := func(on pando.Device) (out answers) {
			f, err := pando.Freeze(keys, vals, pando.Layout(l), pando.On(on))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for i := range lo {
				out.sums[i] = pando.Aggregate(f, lo[i], hi[i])
				pando.Histogram(f, lo[i], hi[i], []float64{-0.5, 0.25}, out.counts[i][:])
			}
			pando.AggregateBatch(f, lo, hi, out.sums[4:])
			return out
		}
		want := ask(pando.CPU)
		eachFault(t, first, 4, 25, func(dev device.Device, at, all int, lose bool) {
			indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
			if got := ask(pando.GPU(0)); got != want {
				t.Fatalf("%v, operation %d of %d, lost %v: %+v, want %+v", l, at, all, lose, got, want)
			}
		})
	}
}

// A GPU that alone has a tree, and has no memory for sums, hands the values over.
func TestSumsWithoutMemory(t *testing.T) {
	indextest.Quiet(t)
	indextest.Hasty(t, 64)
	first := seed.Of(t)
	keys, vals := make([]uint64, 300), make([]uint64, 300)
	has := map[uint64]uint64{}
	for i := range keys {
		keys[i], vals[i] = uint64(i)*2, uint64(i*i)
		has[keys[i]] = vals[i]
	}
	load := func(dev device.Device) *pando.Tree[uint64, uint64] {
		indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
		tree, err := pando.TreeOf(keys, vals, pando.On(pando.GPU(0)), pando.DeviceOnly())
		if err != nil {
			t.Fatal(err)
		}
		tree.GetBatch(keys, make([]uint64, len(keys)), nil) // takes what searches need
		return tree
	}
	for _, op := range []faulty.Op{faulty.Alloc, faulty.HostAlloc} {
		count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{})
		load(count).Close()
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{Op: op, At: count.Count(op) + 1})
		tree := load(dev)
		for range 2 { // first without memory
			if got, want := pando.Aggregate(tree, 5, 401), sumOf(has, 5, 401); !sameSum(got, want) {
				t.Errorf("%v fails: %+v, want %+v", op, got, want)
			}
		}
		if dev.Count(op) <= count.Count(op) {
			t.Errorf("no %v has failed", op)
		}
		tree.Close()
	}
}
