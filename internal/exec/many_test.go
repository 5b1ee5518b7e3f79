package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// crowd asks from many goroutines, more than there are slots, batches of
// several buckets each; alongside runs beside them, after some have begun.
func crowd(t *testing.T, d device.Device, keep func(layout.Image) Keep, n int, alongside func(*GPU[uint64], *rand.Rand)) {
	t.Helper()
	start := seed.Of(t)
	rng := rand.New(rand.NewPCG(start, 0))
	r := newRig[int64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 1500}, 2)
	g := r.openOn(t, d, keep(r.image))
	plan := g.Plan()
	plan.Bucket = 1 + n/8
	if err := g.Use(plan); err != nil {
		t.Fatal(err)
	}
	rounds := 3
	if hasty() {
		rounds = 1
	}
	inTime(t, func() {
		var all sync.WaitGroup
		for who := range 2*flow.MaxSlots + 3 {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(start, uint64(who)))
				for range rounds {
					keys, of := r.questions(rng, 1+rng.IntN(n)), r.randomRuns(rng, 20)
					if diff := differ(r.ask(g, keys, of), r.ask(r.cpu, keys, of)); diff != "" {
						t.Errorf("goroutine %d: %.300s", who, diff)
					}
				}
			})
		}
		alongside(g, rng)
		all.Wait()
		if err := g.Close(); err != nil && g.Down() == nil {
			t.Error(err)
		}
	})
}

func whole(im layout.Image) Keep { return Whole(&im) }
func inner(im layout.Image) Keep { return Keep{0, im.Depth()} }
func lower(im layout.Image) Keep { return Keep{1, im.Depth() + 1} }

// devices runs a test on the fast device with large batches, also where it
// keeps the CPU waiting, and on the interpreter with small ones.
func devices(t *testing.T, run func(t *testing.T, open func() device.Device, n int)) {
	t.Run("native", func(t *testing.T) {
		run(t, func() device.Device { return newNative() }, minShared+500)
	})
	t.Run("late", func(t *testing.T) {
		run(t, func() device.Device {
			d := newNative()
			d.late = 50 * time.Microsecond
			return d
		}, minShared+500)
	})
	t.Run("interpreter", func(t *testing.T) {
		run(t, func() device.Device { return ptx.New(ptx.RaceCheck(false)) }, 300)
	})
}

// Plans may change while batches run.
func TestManyCallersOfAGPU(t *testing.T) {
	for name, keep := range map[string]func(layout.Image) Keep{"whole": whole, "inner": inner, "lower": lower} {
		t.Run(name, func(t *testing.T) {
			devices(t, func(t *testing.T, open func() device.Device, n int) {
				crowd(t, open(), keep, n, func(g *GPU[uint64], rng *rand.Rand) {
					legals := legalSplits(g.keep, g.steps.Depth())
					for range 50 {
						p := Plan{legals[rng.IntN(len(legals))], 1 + rng.IntN(n), ways[rng.IntN(len(ways))]}
						if err := g.Use(p); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Millisecond)
					}
				})
			})
		})
	}
}

// A schedule may be closed while batches run: they go on on the CPU.
func TestCloseInFlight(t *testing.T) {
	devices(t, func(t *testing.T, open func() device.Device, n int) {
		for _, keep := range []func(layout.Image) Keep{whole, inner, lower} {
			for i := range 4 {
				if hasty() && i > 0 {
					break
				}
				d := faulty.New(open(), faulty.Plan{}) // counts what is left
				var closed *GPU[uint64]
				crowd(t, d, keep, n, func(g *GPU[uint64], rng *rand.Rand) {
					closed = g
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
					if err := g.Close(); err != nil {
						t.Error(err)
					}
					if live := d.Live(); live != 0 {
						t.Errorf("%d things are left on the device", live)
					}
				})
				if err := closed.Down(); err != nil {
					t.Errorf("the device was used after Close: %v", err)
				}
			}
		}
	})
}

// A device may fail, or be lost, while many use it.
func TestFaultsAmongMany(t *testing.T) {
	devices(t, func(t *testing.T, open func() device.Device, n int) {
		for i := range 12 {
			if hasty() && i%3 != 1 {
				continue
			}
			at := 40 + 17*i
			d := faulty.New(open(), faulty.Plan{At: at, Lose: i%2 == 0})
			crowd(t, d, []func(layout.Image) Keep{whole, inner, lower}[i%3], n, func(*GPU[uint64], *rand.Rand) {})
			if live := d.Live(); live != 0 {
				t.Errorf("fault at %d: %d things are left on the device", at, live)
			}
		}
	})
}

// Measuring anew may be under way when the schedule is closed; main_test.go
// sees whether a goroutine is left.
func TestCloseWhileMeasuring(t *testing.T) {
	devices(t, func(t *testing.T, open func() device.Device, n int) {
		crowd(t, open(), inner, n, func(g *GPU[uint64], rng *rand.Rand) {
			if _, err := g.Balance(order.KeysOf(make([]int64, n))); err != nil {
				t.Error(err)
			}
			for range strayedBatches {
				g.look(time.Hour, watchedBatch)
			}
			g.watch.mu.Lock()
			running := g.watch.running
			g.watch.mu.Unlock()
			if !running {
				t.Error("nothing is measured though batches take an hour")
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			g.watch.mu.Lock()
			defer g.watch.mu.Unlock()
			if g.watch.running {
				t.Error("still measuring after Close")
			}
		})
	})
}

// A sink that panics, panics in its caller; the schedule goes on, and can be
// closed.
func TestPanicOnAGPU(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{implicit.Apart, 8, 0, 1500}, 3)
	for _, keep := range []Keep{whole(r.image), inner(r.image), lower(r.image)} {
		for _, way := range ways {
			g := r.openOn(t, newNative(), keep)
			plan := g.Plan()
			plan.Bucket, plan.Overlap = minBucket, way
			if err := g.Use(plan); err != nil {
				t.Fatal(err)
			}
			keys := r.questions(rng, 3*minShared)
			inTime(t, func() {
				for range flow.MaxSlots + 1 { // more often than there are slots
					panics(t, func() { g.FindEach(order.KeysOf(keys), burst{}) })
				}
				r.sameRanks(t, g, keys, fmt.Sprintf("after a panic: %+v", plan))
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func panics(t *testing.T, run func()) {
	t.Helper()
	defer func() {
		if v := recover(); v != "burst" {
			t.Errorf("recovered %v", v)
		}
	}()
	run()
}

func TestGPUBatchesAllocateNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	rng := seed.Rand(t)
	for _, s := range []shape{{implicit.Pairs, 8, 0, 1500}, {implicit.Pairs, 8, pagedRows - 1, 1500}, {implicit.Apart, 8, packedPages, 5000}} {
		r := newRig[int64, uint64](t, rng, s, 2)
		for _, keep := range []Keep{whole(r.image), inner(r.image), lower(r.image)} {
			allocateNothing(t, r, keep)
		}
	}
}

func allocateNothing(t *testing.T, r *rig[int64, uint64], keep Keep) {
	t.Helper()
	d := newNative()
	d.idle = true
	g := r.openOn(t, d, keep)
	var sink Sink = still{}
	for _, n := range []int{1, 100, 20_000} {
		keys, ranks, vals := keysAndRoom(n)
		found := make([]bool, n)
		if allocs := testing.AllocsPerRun(50, func() {
			g.Rank(order.KeysOf(keys), ranks)
			g.RankAfter(order.KeysOf(keys), ranks)
			g.FindEach(order.KeysOf(keys), sink)
			if r.leaves == implicit.Pairs {
				g.GetPairs(order.KeysOf(keys), vals, found)
			} else {
				g.FindVals(order.KeysOf(keys), sink, arena.Bytes(vals), found)
			}
		}); allocs >= 1 {
			t.Errorf("%v: GPU has %v: batch of %d: %v allocations", r.shape, keep, n, allocs)
		}
	}
}

// Values of no bytes are nothing that a GPU could give: the sink is told.
func TestNoValuesInTheTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, entries := range []int{0, 3, 500} {
		r := newRig[uint64, uint64](t, rng, shape{implicit.Apart, 0, 0, entries}, 1)
		g := r.open(t, whole(r.image), ptx.RaceCheck(false))
		keys := r.questions(rng, 100)
		got, want := newPlaces(len(keys)), newPlaces(len(keys))
		hits, wantHits := g.FindVals(order.KeysOf(keys), got, []byte{}, make([]bool, len(keys))), r.cpu.FindEach(order.KeysOf(keys), want)
		if hits != wantHits || !slices.Equal(got.at, want.at) || !slices.Equal(got.times, want.times) {
			t.Errorf("%d entries: %d hits, the CPU has %d", entries, hits, wantHits)
		}
	}
}
