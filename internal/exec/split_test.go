package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// keeps gives all that a GPU may hold: upper levels, lower levels, everything
// and nothing.
func keeps(depth int) (all []Keep) {
	for k := range depth + 2 {
		all = append(all, Keep{0, k})
	}
	for d := 1; d <= depth; d++ {
		all = append(all, Keep{d, depth + 1})
	}
	return all
}

var shares = []float64{0, 0.3, 0.5, 1}

// splits returns every split with bounds from 0 to behind the leaves, legal or
// not.
func splits(depth int) (all []Split) {
	for upper := range depth + 2 {
		for lower := range depth + 2 {
			for _, share := range shares {
				all = append(all, Split{upper, share, lower})
			}
		}
	}
	return all
}

// legal is what the documentation of Split says, for a GPU that holds these
// levels.
func legal(s Split, k Keep, depth int) bool {
	deepest := s.Upper
	if s.Share > 0 {
		deepest++
	}
	return k.First <= s.Upper && s.Lower <= k.Last && deepest <= s.Lower && deepest <= depth
}

var (
	buckets = []int{1, 33, 101, 1 << 10, MaxBucket}
	batches = []int{1, 31, 32, 33, 200}
	ways    = []flow.Overlap{flow.Sequential, flow.Pipelined, flow.DoubleBuffered}
)

// One log of operations gives the same on the CPU and on CPU and GPU together,
// however a search is split between them.
func TestEverySplitGivesWhatTheCPUGives(t *testing.T) {
	start := seed.Of(t)
	for i, s := range []struct {
		name string
		run  func(*testing.T, *rand.Rand, shape)
		shape
	}{
		{"int64 pairs", everySplit[int64, uint64], shape{implicit.Pairs, 8, 0, 3000}},
		{"int64 column of 8", everySplit[int64, uint64], shape{implicit.Apart, 8, 8, 2500}},
		{"uint64 pairs", everySplit[uint64, uint64], shape{implicit.Pairs, 8, 8, 700}},
		{"uint64 column of 4", everySplit[uint64, uint64], shape{implicit.Apart, 4, 0, 700}},
		{"uint64 alone", everySplit[uint64, uint64], shape{implicit.Apart, 0, 0, 100}},
		{"uint32 pairs", everySplit[uint32, uint32], shape{implicit.Pairs, 4, 0, 3000}},
		{"uint32 column of 8", everySplit[uint32, uint32], shape{implicit.Apart, 8, 16, 5000}},
		{"int32 column of 4", everySplit[int32, uint32], shape{implicit.Apart, 4, 0, 300}},
		{"int16 pairs", everySplit[int16, uint32], shape{implicit.Pairs, 4, 0, 200}},
		{"one pair", everySplit[int64, uint64], shape{implicit.Pairs, 8, 0, 1}},
		{"five, column", everySplit[uint32, uint32], shape{implicit.Apart, 4, 0, 5}},
		{"no pairs", everySplit[uint64, uint64], shape{implicit.Pairs, 8, 0, 0}},
		{"no entries, column", everySplit[int32, uint32], shape{implicit.Apart, 8, 0, 0}},
		{"int64 blocked pairs", everySplit[int64, uint64], shape{implicit.Pairs, 8, pagedRows - 1, 1500}},
		{"uint32 blocked pairs", everySplit[uint32, uint32], shape{implicit.Pairs, 4, pagedRows - 2, 3000}},
		{"uint64 blocked column of 4", everySplit[uint64, uint64], shape{implicit.Apart, 4, pagedRows - 2, 5000}},
		{"int32 blocked column of 8", everySplit[int32, uint32], shape{implicit.Apart, 8, pagedRows - 1, 5000}},
		{"uint32 blocked alone", everySplit[uint32, uint32], shape{implicit.Apart, 0, pagedRows - 3, 5000}},
		{"one blocked pair", everySplit[uint64, uint64], shape{implicit.Pairs, 8, pagedRows - 1, 1}},
		{"no blocked entries", everySplit[uint32, uint32], shape{implicit.Apart, 4, pagedRows - 1, 0}},
		{"uint32 packed", everySplit[uint32, uint32], shape{implicit.Apart, 0, packedPages, 3000}},
		{"uint32 packed, column of 8", everySplit[uint32, uint32], shape{implicit.Apart, 8, packedPages, 9000}},
		{"int64 packed, column of 8", everySplit[int64, uint64], shape{implicit.Apart, 8, packedPages, 5000}},
		{"uint64 packed, column of 4", everySplit[uint64, uint64], shape{implicit.Apart, 4, packedPages, 20_000}},
		{"five packed, column", everySplit[int32, uint32], shape{implicit.Apart, 4, packedPages, 5}},
		{"nothing packed, column", everySplit[uint64, uint64], shape{implicit.Apart, 8, packedPages, 0}},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, rand.New(rand.NewPCG(start, uint64(i))), s.shape) })
	}
}

func everySplit[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape) {
	r := newRig[K, C](t, rng, s, 1+rng.IntN(3))
	depth := r.tree.Depth()
	for _, keep := range keeps(depth) {
		g := r.open(t, keep, ptx.Seed(rng.Uint64()), ptx.RaceCheck(false))
		for _, split := range legalSplits(keep, depth) {
			if !pick(rng, 10) {
				continue
			}
			plan := Plan{split, buckets[rng.IntN(len(buckets))], ways[rng.IntN(len(ways))]}
			r.check(t, g, plan, batches[rng.IntN(len(batches))], rng)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		r.onCUDA(t, keep, batches, rng)
	}
}

// onCUDA runs the log by every legal split on a GPU, where there is one.
func (r *rig[K, C]) onCUDA(t *testing.T, keep Keep, sizes []int, rng *rand.Rand) {
	t.Helper()
	d, err := cuda.Open(0)
	if err != nil {
		return
	}
	g := r.openOn(t, d, keep)
	for _, split := range legalSplits(keep, r.tree.Depth()) {
		for _, way := range ways {
			r.check(t, g, Plan{split, buckets[rng.IntN(len(buckets))], way}, sizes[rng.IntN(len(sizes))], rng)
		}
	}
}

// check runs the log by a plan.
func (r *rig[K, C]) check(t *testing.T, g *GPU[C], p Plan, n int, rng *rand.Rand) {
	t.Helper()
	what := fmt.Sprintf("%v, %d levels, GPU has %v: %+v, batch of %d", r.shape, r.tree.Depth(), g.keep, p, n)
	if err := g.Use(p); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	keys, of := r.questions(rng, n), r.randomRuns(rng, min(n/4, 3000))
	if d := differ(r.ask(g, keys, of), r.ask(r.cpu, keys, of)); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
	if err := g.Down(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Buckets of every size follow each other in every way, in batches smaller
// than one and of many.
func TestEveryBucketAndWay(t *testing.T) {
	rng := seed.Rand(t)
	t.Run("int64", func(t *testing.T) { everyBucket[int64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 900}) })
	t.Run("uint32", func(t *testing.T) { everyBucket[uint32, uint32](t, rng, shape{implicit.Apart, 8, 0, 900}) })
	t.Run("blocked", func(t *testing.T) { everyBucket[int64, uint64](t, rng, shape{implicit.Pairs, 8, pagedRows - 1, 900}) })
	t.Run("packed", func(t *testing.T) { everyBucket[uint64, uint64](t, rng, shape{implicit.Apart, 8, packedPages, 5000}) })
}

func everyBucket[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape) {
	r := newRig[K, C](t, rng, s, 2)
	depth := r.tree.Depth()
	for _, keep := range []Keep{whole(r.image), {0, depth}, {1, depth + 1}} {
		g := r.open(t, keep, ptx.Seed(rng.Uint64())) // with a look for races
		legals := legalSplits(keep, depth)
		for _, way := range ways {
			for _, bucket := range buckets {
				n := batches[rng.IntN(len(batches))]
				r.check(t, g, Plan{legals[rng.IntN(len(legals))], bucket, way}, n, rng)
			}
		}
	}
}

func legalSplits(k Keep, depth int) (all []Split) {
	for _, s := range splits(depth) {
		if legal(s, k, depth) {
			all = append(all, s)
		}
	}
	return all
}

// Batches from one bucket to several, with pieces for several workers, by all
// splits: on the device that runs kernels as fast as Go can.
func TestLargeBatches(t *testing.T) {
	start := seed.Of(t)
	for i, s := range []struct {
		name string
		run  func(*testing.T, *rand.Rand, shape)
		shape
	}{
		{"int64 pairs", largeBatches[int64, uint64], shape{implicit.Pairs, 8, 0, 20_000}},
		{"uint64 pairs", largeBatches[uint64, uint64], shape{implicit.Pairs, 8, 0, 20_000}},
		{"uint32 column of 8", largeBatches[uint32, uint32], shape{implicit.Apart, 8, 0, 20_000}},
		{"uint64 blocked pairs", largeBatches[uint64, uint64], shape{implicit.Pairs, 8, pagedRows - 2, 20_000}},
		{"int32 packed, column of 4", largeBatches[int32, uint32], shape{implicit.Apart, 4, packedPages, 80_000}},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, rand.New(rand.NewPCG(start, uint64(i))), s.shape) })
	}
}

func largeBatches[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape) {
	r := newRig[K, C](t, rng, s, 3)
	depth := r.tree.Depth()
	sizes := []int{minShared, smallest + 1, 3*smallest - 1, 5 * maxBucket}
	for _, keep := range []Keep{whole(r.image), {0, depth}, {1, depth + 1}} {
		g := r.openOn(t, newNative(), keep)
		legals := legalSplits(keep, depth)
		for _, way := range ways {
			for _, bucket := range []int{minBucket, maxBucket + 32, smallest, MaxBucket / 4} {
				if !pick(rng, 12) {
					continue
				}
				r.check(t, g, Plan{legals[rng.IntN(len(legals))], bucket, way}, sizes[rng.IntN(len(sizes))], rng)
			}
		}
	}
	for _, keep := range keeps(depth) {
		r.onCUDA(t, keep, sizes, rng)
	}
	r.slowGPU(t, rng)
	if hasty() || s.leaves == implicit.Apart {
		return
	}
	g := r.openOn(t, newNative(), whole(r.image))
	r.check(t, g, Plan{Split{0, 0, depth + 1}, MaxBucket / 4, flow.DoubleBuffered}, pastCaches+77, rng)
	r.check(t, g, Plan{Split{1, 0.5, depth}, MaxBucket / 4, flow.Pipelined}, pastCaches+77, rng)
}

// slowGPU has a GPU that lets the CPU wait for every bucket, of any size, so
// that the CPU has time for what is not its own.
func (r *rig[K, C]) slowGPU(t *testing.T, rng *rand.Rand) {
	t.Helper()
	depth := r.tree.Depth()
	d := newNative()
	d.late = 100 * time.Microsecond
	g := r.openOn(t, d, whole(r.image))
	for _, bucket := range []int{33, 200, minBucket + 1, maxBucket} {
		for _, way := range ways {
			if !pick(rng, 12) {
				continue
			}
			n := min(2*minShared+rng.IntN(4*minShared), 200*bucket)
			r.check(t, g, Plan{Split{rng.IntN(2), 0.5, depth}, bucket, way}, n, rng)
			r.check(t, g, Plan{Split{0, 0, depth + 1}, bucket, way}, n, rng)
			if r.valSize == width[C]() {
				r.askIn(t, g, d, g.Plan(), sides{same: true}, n, rng)
			}
		}
	}
}
