package exec

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// costs are what CPU and GPU take at every whole level: the CPU's grow, the
// GPU's fall. In between, each share of a bucket has its cost.
type costs struct{ gpu, cpu []float64 }

func randomCosts(rng *rand.Rand, levels int) (c costs) {
	gpu, cpu := 1e6*rng.Float64(), 1e6*rng.Float64()*rng.Float64()
	for range levels + 1 {
		c.gpu, c.cpu = append(c.gpu, gpu), append(c.cpu, cpu)
		gpu *= rng.Float64()
		cpu += 1e6 * rng.Float64()
	}
	return c
}

// at returns the costs at a place between levels.
func (c costs) at(x float64) (gpu, cpu float64) {
	l := min(int(x), len(c.gpu)-2)
	if l < 0 {
		return c.gpu[0], c.cpu[0]
	}
	part := x - float64(l)
	return c.gpu[l] + part*(c.gpu[l+1]-c.gpu[l]), c.cpu[l] + part*(c.cpu[l+1]-c.cpu[l])
}

// best returns the place where the slower of both is fastest.
func (c costs) best() float64 {
	lo, hi := 0.0, float64(len(c.gpu)-1)
	for range 60 {
		mid := (lo + hi) / 2
		if gpu, cpu := c.at(mid); gpu > cpu {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// The split found is within a sixteenth of a level of the best, and nothing is
// tried that could not be.
func TestDiscover(t *testing.T) {
	rng := seed.Rand(t)
	for range 2000 {
		first, levels := rng.IntN(3), rng.IntN(6)
		c, lower := randomCosts(rng, levels), first+levels+rng.IntN(2)
		samples := 0
		s := discover(Split{Upper: first, Lower: lower, Share: 0.7}, first+levels, func(s Split) (gpu, cpu time.Duration) {
			samples++
			if !legal(s, Keep{first, lower}, first+levels) {
				t.Fatalf("%+v was tried, the GPU has levels %d to %d of %d", s, first, lower, first+levels)
			}
			g, h := c.at(float64(s.Upper-first) + s.Share)
			return time.Duration(g), time.Duration(h)
		})
		at, best := float64(s.Upper-first)+s.Share, c.best()
		if math.Abs(at-best) > 1.0/16 {
			t.Fatalf("%+v: %+v, at %v; the best is %v", c, s, at, best)
		}
		if !legal(s, Keep{first, lower}, first+levels) || s.Lower != lower {
			t.Fatalf("%+v was found, the GPU has levels %d to %d of %d", s, first, lower, first+levels)
		}
		if samples > levels+1+5 {
			t.Fatalf("%d samples for %d levels", samples, levels)
		}
	}
}

// Costs that make no sense, as measurements may, lead to a legal split all the
// same, and to an end.
func TestDiscoverWithNonsense(t *testing.T) {
	rng := seed.Rand(t)
	for range 2000 {
		levels := rng.IntN(6)
		keep := Keep{0, levels + rng.IntN(2)}
		try := func(s Split) (gpu, cpu time.Duration) {
			if !legal(s, keep, levels) {
				t.Fatalf("%+v was tried, the GPU has %v of %d levels", s, keep, levels)
			}
			return time.Duration(rng.IntN(5)), time.Duration(rng.IntN(4))
		}
		if s := discover(Split{Lower: keep.Last}, levels, try); !legal(s, keep, levels) {
			t.Fatalf("%+v was found, the GPU has %v of %d levels", s, keep, levels)
		}
	}
}

const expectedPace = time.Millisecond // for 1024 queries

func newWatch() *watch {
	w := new(watch)
	w.expect(order.KeysOf(make([]int64, 64<<10)), 64*expectedPace)
	return w
}

// see shows batches of 128K queries that take so many times what is expected.
func see(w *watch, batches int, times float64) (measure int) {
	for range batches {
		if _, again := w.saw(time.Duration(times*128*float64(expectedPace)), 128<<10); again {
			measure++
		}
	}
	return measure
}

func TestWatchSeesDrift(t *testing.T) {
	for _, c := range []struct {
		times float64
		drift bool
	}{{1, false}, {1.9, false}, {0.55, false}, {2, false}, {0.5, false}, {2.1, true}, {0.45, true}, {100, true}, {0, true}} {
		w := newWatch()
		if see(w, strayedBatches-1, c.times) != 0 {
			t.Errorf("%v times as long: measured after %d batches", c.times, strayedBatches-1)
		}
		if got := see(w, 1, c.times); (got == 1) != c.drift {
			t.Errorf("%v times as long: measured %d times after %d batches", c.times, got, strayedBatches)
		}
		if see(w, 5*strayedBatches, c.times) != 0 {
			t.Errorf("%v times as long: measured again while that is under way, or without need", c.times)
		}
		w.close0(c.drift)
	}
}

// close0 ends the measurement, if one was begun, and the watch.
func (w *watch) close0(running bool) {
	if running {
		w.measured()
	}
	w.close()
}

// One batch as expected, and it begins anew.
func TestWatchForgives(t *testing.T) {
	w := newWatch()
	for range 5 {
		if see(w, strayedBatches-1, 3)+see(w, 1, 1) != 0 {
			t.Error("measured, though batches did not stray in a row")
		}
	}
}

// After a measurement what is expected is what was measured.
func TestWatchLearns(t *testing.T) {
	w := newWatch()
	if see(w, strayedBatches, 3) != 1 {
		t.Error("not measured")
	}
	w.expect(order.KeysOf(make([]int64, 64<<10)), 3*64*expectedPace)
	w.measured()
	if see(w, 2*strayedBatches, 3) != 0 {
		t.Error("measured again, though batches take what they took then")
	}
	if see(w, strayedBatches, 1) != 1 {
		t.Error("not measured when batches were faster again")
	}
	w.measured()
	w.close()
	if see(w, strayedBatches, 1) != 0 {
		t.Error("measured after the end")
	}
	if see(new(watch), strayedBatches, 1) != 0 {
		t.Error("measured before there was a plan")
	}
}

// What is measured is of the buckets that were there: as many queries as they
// had, no less time than the device makes them wait, and no step of a bucket
// longer than the bucket.
func TestMeasure(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[int64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 4000}, 2)
	d := newNative()
	d.late = 200 * time.Microsecond
	g := r.openOn(t, d, inner(r.image))
	for _, way := range ways {
		p := Plan{Split{0, 0.5, r.tree.Depth()}, minBucket, way}
		got, err := g.Measure(order.KeysOf(r.questions(rng, 5*minBucket)), p)
		if err != nil || got.Queries != minBucket {
			t.Errorf("%v: %+v, %v", way, got, err)
		}
		if got.Latency < d.late || got.Busy <= 0 || got.Alone <= 0 {
			t.Errorf("%v: a bucket that waits %v takes %+v", way, d.late, got)
		}
		for _, step := range []time.Duration{got.Fill, got.In, got.Search, got.Out, got.Finish, got.Send} {
			if step < 0 || step > got.Latency {
				t.Errorf("%v: a step of %v in %+v", way, step, got)
			}
		}
		if way == flow.Sequential && got.Fill+got.Send+got.Finish > got.Latency {
			t.Errorf("one after the other: %+v", got)
		}
	}
}

// Balance returns a plan that is legal and in use, and answers stay the same.
func TestBalance(t *testing.T) {
	rng := seed.Rand(t)
	for _, s := range []shape{{implicit.Pairs, 8, 0, 4000}, {implicit.Apart, 8, 0, 4000}, {implicit.Apart, 0, 0, 1}, {implicit.Pairs, 8, 0, 0}} {
		r := newRig[int64, uint64](t, rng, s, 2)
		depth := r.tree.Depth()
		for _, keep := range keeps(depth) {
			g := r.openOn(t, newNative(), keep)
			plan, err := g.Balance(order.KeysOf(r.questions(rng, 2000*min(1, s.entries))))
			if err != nil || plan != g.Plan() || !legal(plan.Split, keep, depth) {
				t.Fatalf("%v, GPU has %v: %+v, in use %+v, %v", s, keep, plan, g.Plan(), err)
			}
			g.Crossover(order.KeysOf(r.questions(rng, 1000)))
			keys, of := r.questions(rng, 500), r.randomRuns(rng, 10)
			if diff := differ(r.ask(g, keys, of), r.ask(r.cpu, keys, of)); diff != "" {
				t.Fatalf("%v, GPU has %v: %+v: %s", s, keep, plan, diff)
			}
		}
	}
}

// A GPU that has failed is not measured any more.
func TestNothingIsMeasuredAfterAFailure(t *testing.T) {
	r := newRig[int64, uint64](t, seed.Rand(t), shape{implicit.Pairs, 8, 0, 4000}, 2)
	g := r.openOn(t, newNative(), inner(r.image))
	if _, err := g.Balance(order.KeysOf(r.held)); err != nil {
		t.Fatal(err)
	}
	g.fail(errNative)
	for range 2 * strayedBatches {
		g.look(time.Hour, watchedBatch)
	}
	if g.watch.running {
		t.Error("measured")
	}
}
