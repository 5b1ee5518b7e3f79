package exec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// Whatever operation of a batch fails, or loses the device, by whatever split:
// the answers are the same, and nothing is left on the device.
func TestEveryFaultOfASplit(t *testing.T) {
	start := seed.Of(t)
	for i, c := range []struct {
		name string
		keep func(depth int) Keep
		Plan
	}{
		{"inner levels", func(depth int) Keep { return Keep{0, depth} }, Plan{Split{0, 0, -1}, 64, flow.DoubleBuffered}},
		{"upper levels", func(depth int) Keep { return Keep{0, depth - 1} }, Plan{Split{0, 0.5, -2}, 64, flow.Pipelined}},
		{"balanced", func(depth int) Keep { return Keep{0, depth} }, Plan{Split{1, 0.5, -1}, 64, flow.Sequential}},
		{"leaves", func(depth int) Keep { return Keep{1, depth + 1} }, Plan{Split{1, 0.5, 0}, 64, flow.DoubleBuffered}},
		{"everything", func(depth int) Keep { return Keep{0, depth + 1} }, Plan{Split{0, 0, 0}, 64, flow.DoubleBuffered}},
	} {
		rng := rand.New(rand.NewPCG(start, uint64(i)))
		pairs, column := shape{implicit.Pairs, 8, 0, 400}, shape{implicit.Apart, 8, 0, 900}
		fast := func() device.Device { return newNative() }
		t.Run(c.name+", pairs", func(t *testing.T) { everyFault[int64, uint64](t, rng, pairs, fast, 1, c.keep, c.Plan) })
		t.Run(c.name+", column", func(t *testing.T) { everyFault[uint32, uint32](t, rng, column, fast, 1, c.keep, c.Plan) })
		if c.name == "everything" {
			signed := shape{implicit.Pairs, 8, 0, 17_000}
			t.Run(c.name+", signs", func(t *testing.T) { everyFault[int64, uint64](t, rng, signed, fast, 1, c.keep, c.Plan) })
		}
		rows, pages := shape{implicit.Pairs, 8, pagedRows - 1, 900}, shape{implicit.Apart, 8, packedPages, 2400}
		t.Run(c.name+", blocked", func(t *testing.T) { everyFault[int64, uint64](t, rng, rows, fast, 1, c.keep, c.Plan) })
		t.Run(c.name+", packed", func(t *testing.T) { everyFault[uint64, uint64](t, rng, pages, fast, 1, c.keep, c.Plan) })
		// The interpreter is late with what was queued, and takes its time.
		late := func() device.Device { return ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false)) }
		t.Run(c.name+", interpreter", func(t *testing.T) { everyFault[int64, uint64](t, rng, pairs, late, 4, c.keep, c.Plan) })
		t.Run(c.name+", blocked, interpreter", func(t *testing.T) { everyFault[int64, uint64](t, rng, rows, late, 11, c.keep, c.Plan) })
		t.Run(c.name+", packed, interpreter", func(t *testing.T) { everyFault[uint64, uint64](t, rng, pages, late, 11, c.keep, c.Plan) })
	}
}

// everyFault counts the operations of a run, and lets one in so many of them
// fail. The plan's Lower counts from behind the leaves.
func everyFault[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape, open func() device.Device, step int, levels func(int) Keep, p Plan) {
	r := newRig[K, C](t, rng, s, 2)
	depth := r.tree.Depth()
	keep := levels(depth)
	p.Lower += depth + 1
	keys, of := r.questions(rng, 150), r.randomRuns(rng, 20)
	want := r.ask(r.cpu, keys, of)
	run := func(fault faulty.Plan) *faulty.Device {
		d := faulty.New(open(), fault)
		what := fmt.Sprintf("%v, GPU has %v, %+v, fault %+v", s, keep, p, fault)
		g, err := NewGPU(r.cpu, d, r.image, keep)
		if err == nil {
			if err := g.Use(p); err != nil {
				t.Fatal(err)
			}
			if diff := differ(r.ask(g, keys, of), want); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
			if err := g.Close(); err != nil && !fault.Lose {
				t.Fatalf("%s: %v", what, err)
			}
		} else if fault.At == 0 {
			t.Fatal(err)
		}
		if live := d.Live(); live != 0 {
			t.Fatalf("%s: %d things are left on the device", what, live)
		}
		return d
	}
	if hasty() {
		step *= 7
	}
	count := run(faulty.Plan{}).Count(faulty.Any)
	t.Logf("%d operations", count)
	for at := 1 + rng.IntN(step); at <= count; at += step {
		run(faulty.Plan{At: at})
		run(faulty.Plan{At: at, Lose: true})
	}
}

// Values that a GPU writes where they belong are written anew where it failed.
func TestFaultsInCallersMemory(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 2000}, 2)
	for _, op := range []faulty.Op{faulty.CopyIn, faulty.Launch, faulty.CopyOut, faulty.Record, faulty.Synchronize} {
		for at := 1; at < 20; at++ {
			if !pick(rng, 8) {
				continue
			}
			inner := newNative()
			d := faulty.New(inner, faulty.Plan{Op: op, At: at, Lose: at%3 == 0})
			g, err := NewGPU(r.cpu, d, r.image, whole(r.image))
			if err != nil {
				continue // the copy of the tree
			}
			r.inLocked(t, g, inner, fmt.Sprintf("%v number %d", op, at), rng)
			g.Close()
		}
	}
}

// inLocked looks keys up with both sides in page-locked memory.
func (r *rig[K, C]) inLocked(t *testing.T, g *GPU[C], d device.Device, what string, rng *rand.Rand) {
	t.Helper()
	const n = 2*smallest + 100
	asked := r.questions(rng, n)
	keys, raw := keysIn[K](bytesFor(t, d, n*r.valSize, true)), bytesFor(t, d, n*r.valSize, true)
	copy(keys, asked)
	want := make([]byte, len(raw))
	if g.measures(order.KeysOf(keys), raw) != [2]bool{true, true} {
		t.Fatal("page-locked memory is not used")
	}
	for range 2 {
		clear(raw)
		if hits, wantHits := r.values(g, keys, raw, nil), r.values(r.cpu, asked, want, nil); hits != wantHits || string(raw) != string(want) {
			t.Fatalf("%s: other values; %d hits, the CPU has %d", what, hits, wantHits)
		}
	}
}

// measures reports whether the GPU reads keys where they are, and writes values
// where they belong.
func (g *GPU[C]) measures(keys order.Keys, raw []byte) [2]bool {
	j := &search[C]{gpu: g, plan: g.Plan(), batch: batch[C]{ask: getPairs, keys: keys, raw: raw}}
	j.measure(keys.Len())
	return [2]bool{j.direct, j.place}
}

// catchUp returns a device enough to do in one stream that it comes to do what it
// has left in others.
func catchUp(t *testing.T, d device.Device) {
	t.Helper()
	st, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	at, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if err := st.Fill(at, 0, 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Synchronize(); err != nil {
		t.Fatal(err)
	}
}

// What was sent of a bucket that failed is over when the batch is: the caller's
// memory is not written any more.
func TestNothingIsWrittenAfterABatch(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 30}, 2)
	const n = smallest + 7
	asked := r.questions(rng, n)
	for at := 1; at <= 4; at++ { // the values of a bucket are copied before its bits
		if hasty() && at != 2 {
			continue
		}
		lazy := ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false))
		g := r.openOn(t, faulty.New(lazy, faulty.Plan{Op: faulty.CopyOut, At: at}), whole(r.image))
		keys, raw := keysIn[uint64](bytesFor(t, lazy, 8*n, true)), bytesFor(t, lazy, 8*n, true)
		copy(keys, asked)
		r.values(g, keys, raw, nil)
		copy(raw, dirtyBytes(len(raw)))
		catchUp(t, lazy)
		if !bytes.Equal(raw, dirtyBytes(len(raw))) {
			t.Errorf("copy %d failed: the caller's memory was written after the batch", at)
		}
	}
}
