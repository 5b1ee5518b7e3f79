package thesis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// The tests of this file need a GPU and are skipped without one.

// onGPU returns the machine's GPU, or skips.
func onGPU(t testing.TB) device.Device {
	t.Helper()
	d, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// hangs is how long something takes that does not end: everything here takes
// seconds at most, and longer under compute-sanitizer.
const hangs = 200 * time.Second

// within does something and ends the process if that does not end in time, and
// says what it was: a test that waits for a kernel cannot be ended otherwise.
func within(what string, do func() error) error {
	timer := time.AfterFunc(hangs, func() {
		fmt.Fprintf(os.Stderr, "HANGS, for %v now: %s\n", hangs, what)
		os.Exit(1)
	})
	defer timer.Stop()
	return do()
}

// blinkSet loads the kernels of a test, once: that takes a driver seconds.
func blinkSet(t testing.TB, d device.Device) *kernel.Set {
	t.Helper()
	set, err := kernel.LoadOnly(d, BlinkSource)
	must(t, err)
	return set
}

// TestBlinkOnGPU tests batches of mixed operations on each kernel as TestBlink
// does: for each key, an order of its operations must explain every answer.
// PANDO_SEEDS says how many batches of each shape.
func TestBlinkOnGPU(t *testing.T) {
	d := onGPU(t)
	set := blinkSet(t, d)
	t.Run("32x16", func(t *testing.T) { blinkOnGPU[uint32](t, d, set, 16, 1) })
	t.Run("32x32", func(t *testing.T) { blinkOnGPU[uint32](t, d, set, 32, 1) })
	t.Run("64x16", func(t *testing.T) { blinkOnGPU[uint64](t, d, set, 16, 1) })
	t.Run("64x32", func(t *testing.T) { blinkOnGPU[uint64](t, d, set, 32, 1) })
	t.Run("32x16 B+", func(t *testing.T) { blinkOnGPU[uint32](t, d, set, 16, 0) })
	t.Run("64x16 B+", func(t *testing.T) { blinkOnGPU[uint64](t, d, set, 16, 0) })
	t.Run("32x32 peeks", func(t *testing.T) { blinkOnGPU[uint32](t, d, set, 32, 1|BlinkPeeks) })
	t.Run("64x16 peeks, tops", func(t *testing.T) { blinkOnGPU[uint64](t, d, set, 16, 1|BlinkPeeks|BlinkTops) })
}

func blinkOnGPU[C simd.Code](t *testing.T, d device.Device, set *kernel.Set, order int, how uint32) {
	start := seed.Of(t)
	b, err := NewBlinkOf[C](d, set, order, 1024)
	must(t, err)
	defer b.Close()
	b.Tree.How, b.Shape.Block = how, 32
	for s := range uint64(seed.Count(100)) {
		err := within(fmt.Sprintf("%s, seed %d", t.Name(), start+s), func() error { return blinkSeed(b, start+s) })
		if err != nil {
			t.Fatalf("seed %d: %v", start+s, err)
		}
	}
}

// TestBlinkLoadOnGPU tests the bulk insert, lookups and ranges.
func TestBlinkLoadOnGPU(t *testing.T) {
	d := onGPU(t)
	set := blinkSet(t, d)
	for _, order := range []int{16, 32} {
		n, err := NewBlinkOf[uint32](d, set, order, 256)
		must(t, err)
		blinkLoads(t, n)
		must(t, n.Close())
		w, err := NewBlinkOf[uint64](d, set, order, 256)
		must(t, err)
		blinkLoads(t, w)
		must(t, w.Close())
	}
}

// TestBlinkLargeOnGPU tests a million operations at once on a million entries,
// with every tile that the GPU has room for at work.
func TestBlinkLargeOnGPU(t *testing.T) {
	d := onGPU(t)
	t.Run("32 bits", func(t *testing.T) { blinkLarge[uint32](t, d, 1<<20) })
	t.Run("64 bits", func(t *testing.T) { blinkLarge[uint64](t, d, 1<<20) })
}

func blinkLarge[C simd.Code](t *testing.T, d device.Device, n int) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 7))
	if !seed.Long() {
		n /= 16
	}
	b, err := NewBlink[C](d, 16, n)
	must(t, err)
	defer b.Close()
	for kind := range 3 {
		must(t, within(fmt.Sprintf("%s, kernel %d", t.Name(), kind), func() error {
			return meetAs(b, rng, blinkMeeting{n: n, keys: 3}, n, kind)
		}))
	}
}

// TestBlinkRoundsOnGPU plays rounds in which tiles meet in all the ways that a
// latch may hang in. PANDO_SEEDS=10000 plays that many.
func TestBlinkRoundsOnGPU(t *testing.T) {
	d := onGPU(t)
	rounds := seed.Count(200)
	r := newBlinkRounds(t, d, 1<<17)
	start, began := seed.Of(t), time.Now()
	for i := range rounds {
		ops := 2048
		if i/len(blinkMeetings)%50 == 49 {
			ops = 64 << 10 // as many tiles as a GPU has room for
		}
		what, play := r.round(start, i, ops)
		if err := within(what, play); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if (i+1)%500 == 0 {
			t.Logf("%d rounds of %d in %v", i+1, rounds, time.Since(began).Round(time.Millisecond))
		}
	}
	t.Logf("%d rounds, none hangs", rounds)
}

// TestBlinkOneOnGPU tests single operations, one a launch by one tile.
func TestBlinkOneOnGPU(t *testing.T) {
	d := onGPU(t)
	rng := seed.Rand(t)
	b, err := NewBlink[uint64](d, 16, 1024)
	must(t, err)
	defer b.Close()
	want := map[uint64]uint64{}
	for range 500 {
		k, v := rng.Uint64N(400), rng.Uint64()
		old, there := want[k]
		was, outcome, err := b.One(BlinkSet, k, v)
		must(t, err)
		if there != (outcome == BlinkFound) || was != old {
			t.Fatalf("set of %d: %d, %d; want %v, %d", k, outcome, was, there, old)
		}
		want[k] = v
	}
	got, err := entriesOf(b)
	must(t, err)
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}
