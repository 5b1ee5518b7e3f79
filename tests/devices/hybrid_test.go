package devices_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// Keys of every kind that has codes of its own: a device knows codes alone.
func TestHybridGivesWhatTheCPUGives(t *testing.T) {
	start := seed.Of(t)
	indextest.Interpreted(t, start)
	indextest.Hasty(t, 100)
	rng := rand.New(rand.NewPCG(start, 0))
	t.Run("int16", hybridKeys(rng, func() int16 { return int16(rng.Uint32()) }))
	t.Run("int64", hybridKeys(rng, func() int64 { return int64(rng.Uint64() << rng.IntN(64)) }))
	t.Run("uint32", hybridKeys(rng, func() uint32 { return rng.Uint32() >> rng.IntN(32) }))
	t.Run("uint64", hybridKeys(rng, func() uint64 { return -(rng.Uint64() >> rng.IntN(64)) }))
	t.Run("float32", hybridKeys(rng, func() float32 { return float32(rng.NormFloat64()) }))
	t.Run("float64", hybridKeys(rng, func() float64 { return rng.NormFloat64() }))
}

// few returns the size of an index and of a batch that the interpreter takes
// little time for.
func few() (n, ask int) {
	if seed.RaceDetector {
		return 200, 50
	}
	return seed.Size(400, 700), seed.Size(100, 300)
}

// hybridKeys asks hybrid indexes over such keys, with values that lie in the
// leaves and in a column.
func hybridKeys[K pando.Key](rng *rand.Rand, key func() K) func(*testing.T) {
	return func(t *testing.T) {
		n, ask := few()
		keys, asked := make([]K, n), make([]K, ask)
		v64 := make([]uint64, n)
		for i := range n {
			keys[i], v64[i] = key(), rng.Uint64()
		}
		for i := range asked {
			if asked[i] = key(); i%2 == 0 {
				asked[i] = keys[rng.IntN(n)]
			}
		}
		h := pando.Hybrid(0)
		sameOn(t, h, keys, v64, asked, pando.On(h))
		sameOn(t, h, keys, v64, asked, pando.On(h), pando.Layout(pando.Apart))
		sameOn(t, h, keys, v64, asked, pando.On(h), pando.Layout(pando.Blocked))
		sameOn(t, h, keys, v64, asked, pando.On(h), pando.Layout(pando.Compressed))
		sameOn(t, h, keys[:1], v64[:1], asked, pando.On(h))
		sameOn(t, h, keys[:0], v64[:0], asked, pando.On(h))
	}
}

// The same with values of other widths, in Go memory and nowhere.
func TestHybridWithEveryKindOfValue(t *testing.T) {
	start := seed.Of(t)
	indextest.Interpreted(t, start)
	indextest.Hasty(t, 100)
	rng := rand.New(rand.NewPCG(start, 0))
	t.Run("int64", hybridValues(rng, func() int64 { return int64(rng.Uint64() << rng.IntN(64)) }))
	t.Run("uint32", hybridValues(rng, func() uint32 { return rng.Uint32() >> rng.IntN(32) }))
}

func hybridValues[K pando.Key](rng *rand.Rand, key func() K) func(*testing.T) {
	return func(t *testing.T) {
		n, ask := few()
		keys, asked := make([]K, n), make([]K, ask)
		v32, rows := make([]float32, n), make([]string, n)
		for i := range n {
			keys[i], v32[i], rows[i] = key(), rng.Float32(), strings.Repeat("x", i%5)
		}
		for i := range asked {
			if asked[i] = key(); i%2 == 0 {
				asked[i] = keys[rng.IntN(n)]
			}
		}
		h := pando.Hybrid(0)
		sameOn(t, h, keys, v32, asked, pando.On(h))
		sameOn(t, h, keys, v32, asked, pando.On(h), pando.Layout(pando.Compressed))
		sameOn(t, h, keys, rows, asked, pando.On(h))
		sameOn(t, h, keys, make([]struct{}, n), asked, pando.On(h))
		sameOn(t, h, keys[:0], rows[:0], asked, pando.On(h))
		sameOn(t, pando.GPU(0), keys[:0], rows[:0], asked, pando.On(pando.GPU(0)))
	}
}

// evenKeys returns the keys 0, 2, 4 and so on, which are values, too.
func evenKeys(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = 2 * uint64(i)
	}
	return keys
}

// mustFreezeOn builds an index that the test closes.
func mustFreezeOn(t *testing.T, keys []uint64, opts ...pando.Option) *pando.Frozen[uint64, uint64] {
	t.Helper()
	f, err := pando.Freeze(keys, keys, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Less device memory than nothing makes no sense.
func TestDeviceMemoryBelowZero(t *testing.T) {
	keys := evenKeys(10)
	if _, err := pando.Freeze(keys, keys, pando.DeviceMemory(-1)); err == nil || !strings.Contains(err.Error(), "DeviceMemory(-1)") {
		t.Errorf("DeviceMemory(-1): %v", err)
	}
}

// Auto takes a GPU that pays for what is large: all of it where that fits.
func TestAutoPlans(t *testing.T) {
	if !seed.Long() {
		t.Skip("a large index on the interpreter")
	}
	indextest.Quiet(t)
	indextest.Hasty(t, 100)
	const autoEntries = 1 << 20 // from which on Auto looks for a GPU
	keys := evenKeys(autoEntries)
	for memory, want := range map[int64]pando.Device{256 << 20: pando.GPU(0), 64 << 20: pando.Hybrid(0), 1 << 20: pando.CPU} {
		indextest.UseGPU(t, func(int) (device.Device, error) { return ptx.New(ptx.Memory(memory), ptx.RaceCheck(false)), nil })
		f := mustFreezeOn(t, keys)
		if s := f.Stats(); s.Device != want || s.Reason == "" {
			t.Errorf("GPU of %d bytes: on %v: %s", memory, s.Device, s.Reason)
		}
		vals := make([]uint64, 3)
		if hits := f.GetBatch([]uint64{2, 3, 2 * (autoEntries - 1)}, vals, nil); hits != 2 || vals[2] != 2*(autoEntries-1) {
			t.Errorf("GPU of %d bytes: %d hits, values %d", memory, hits, vals)
		}
		f.Close()
	}
}

// Ranges with and without limits, empty ones, and some longer than a bucket.
func TestRangesOnAGPU(t *testing.T) {
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 100)
	const n = 20_000
	keys := evenKeys(n)
	lo := []uint64{0, 5, 7, 9, 100, 2 * n, 3, ^uint64(0), 0}
	hi := []uint64{^uint64(0), 4, 7, 9, 9000, 3 * n, 0, ^uint64(0), 0}
	c := mustFreezeOn(t, keys, pando.On(pando.CPU))
	for _, on := range []pando.Device{pando.GPU(0), pando.Hybrid(0)} {
		for _, layout := range []pando.LayoutKind{pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed} {
			f := mustFreezeOn(t, keys, pando.On(on), pando.Layout(layout))
			for _, limit := range []int{0, 1, 3, 10_000} {
				compareRanges(t, f.RangeBatch(lo, hi, limit), c.RangeBatch(lo, hi, limit))
			}
			compareRanges(t, f.RangeBatch(nil, nil, 0), c.RangeBatch(nil, nil, 0))
			counts := make([]int, len(lo)+1)
			counts[len(lo)] = -7
			f.CountBatch(lo, hi, counts)
			for i := range lo {
				if want := c.Count(lo[i], hi[i]); counts[i] != want {
					t.Errorf("%v: %d entries from %d to %d, on the CPU %d", on, counts[i], lo[i], hi[i], want)
				}
			}
			if counts[len(lo)] != -7 {
				t.Error("CountBatch has written behind its ranges")
			}
			if s := f.Stats(); s.Device != on {
				t.Errorf("the GPU was given up: %s", s.Reason)
			}
		}
	}
}

// A file that is opened for a GPU answers from there what the index answered
// that was saved.
func TestOpenOnAGPU(t *testing.T) {
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 100)
	keys := evenKeys(3000)
	asked := make([]uint64, 500)
	for i := range asked {
		asked[i] = uint64(i * 13)
	}
	for _, layout := range []pando.LayoutKind{pando.Pairs, pando.Blocked, pando.Compressed} {
		c := mustFreezeOn(t, keys, pando.On(pando.CPU), pando.Layout(layout))
		path := filepath.Join(t.TempDir(), "index.pando")
		if err := c.Save(path); err != nil {
			t.Fatal(err)
		}
		for _, on := range []pando.Device{pando.GPU(0), pando.Hybrid(0)} {
			g, err := pando.Open[uint64, uint64](path, pando.On(on))
			if err != nil {
				t.Fatal(err)
			}
			if s := g.Stats(); s.Device != on || s.DeviceBytes == 0 {
				t.Errorf("%v on %v: on %v, %d bytes there: %s", layout, on, s.Device, s.DeviceBytes, s.Reason)
			}
			compareIndexes(t, g, c, asked)
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
