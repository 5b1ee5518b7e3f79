package main

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/pando-index/pando/internal/device"
)

var batcherExp = &experiment{
	name:     "batcher",
	about:    "many goroutines that look up one key at a time: Get, and Batcher.Get on the CPU and on the GPU",
	per:      "one call",
	caseName: "goroutines",
	sizes:    []int{64 * mega},
	queries:  4 * mega,
	faster:   "x Get",
	extra:    []extraColumn{{colMedianCall, number}, {colSlowCall, number}},
	run:      runBatcher,
}

// Latency of a call: the 50th and the 99th percentile.
const (
	colMedianCall = "p50 µs"
	colSlowCall   = "p99 µs"
)

// callers are the numbers of goroutines: those of the target, and as
// many as fill a Batcher's batch.
var callers = []int{64, 16 * kilo}

// batcherSeconds bounds the time of a system in a round: waiting calls are
// slow, and half a second of them is plenty.
const batcherSeconds = 0.5

func runBatcher(s *session) error {
	s.seconds = min(s.seconds, batcherSeconds)
	if err := s.lookAtGPU(); err != nil {
		return err
	}
	const trees = 1 + 2*1.25 // the pairs, and two trees of them
	return eachFitting(s, trees*pairBytes[uint64](), bulkBytes[uint64]()+8, func(d *dataset[uint64]) error {
		systems, err := openAll(s, d, namePandoCPU, namePandoGPU)
		if err != nil {
			return err
		}
		defer closeAll(systems)
		b := &calls{newBulk(s, d), make([]time.Duration, s.queries)}
		for _, goroutines := range callers {
			if err := b.compare(systems, goroutines); err != nil {
				return err
			}
		}
		return nil
	})
}

// lookAtGPU records the GPU, if there is one; the CPU's rows do not need it.
func (s *session) lookAtGPU() error {
	dev, err := s.openGPU()
	if errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		return nil
	}
	if err != nil {
		return err
	}
	s.gpuInfo = infoOf(dev)
	return dev.Close()
}

// calls are lookups of one key each, some of them timed.
type calls struct {
	*bulk[uint64]
	took []time.Duration
}

// compare lets the given number of goroutines call Get, default Batchers, and
// Batchers that answer as soon as all goroutines have asked.
func (b *calls) compare(systems []*placed[uint64], goroutines int) error {
	c := b.contest(strconv.Itoa(goroutines))
	plain := b.caller(namePando+" Get", goroutines, systems[0].ix.Get, 64)
	plain.reference = true
	asked := []*caller{plain}
	for _, sys := range systems {
		for _, size := range []int{0, goroutines} {
			name := sys.Name() + ", Batcher"
			if size > 0 {
				name += " of " + sizeText(size)
			}
			get, stop := sys.batcher(size)
			defer stop() // nobody waits any more
			asked = append(asked, b.caller(name, goroutines, get, 1))
		}
	}
	for _, k := range asked {
		c.subjects = append(c.subjects, k.subject)
	}
	if err := b.s.compete(c); err != nil {
		return err
	}
	for i, r := range b.s.latest(c) {
		k, warm := asked[i], len(asked[i].half)-b.s.rounds
		r.set(colMedianCall, median(k.half[warm:]))
		r.set(colSlowCall, median(k.slow[warm:]))
	}
	return nil
}

// caller is a subject with the latencies of its calls, in microseconds: half
// is the 50th percentile and slow the 99th, one of each per round and per
// warm-up.
type caller struct {
	*subject
	half, slow []float64
}

// caller returns a subject that calls get from the given number of goroutines.
// One call in stride is timed: reading the clock takes a good part of the time
// of a plain Get.
func (b *calls) caller(name string, goroutines int, get func(uint64) (uint64, bool), stride int) *caller {
	var hits int
	k := &caller{}
	k.subject = &subject{
		system: name,
		do: func(ops int) error {
			hits = spread(goroutines, ops, func(lo, hi int) int { return b.each(get, lo, hi, stride) })
			return nil
		},
		check: func(ops int) error {
			took := slices.Sorted(slices.Values(b.took[:(ops+stride-1)/stride]))
			k.half = append(k.half, micros(took[len(took)/2]))
			k.slow = append(k.slow, micros(took[len(took)*99/100]))
			return b.check(ops, hits)
		},
	}
	return k
}

// each runs one goroutine's part.
func (b *calls) each(get func(uint64) (uint64, bool), lo, hi, stride int) (hits int) {
	for i := lo; i < hi; i++ {
		var start time.Time
		timed := i%stride == 0
		if timed {
			start = time.Now()
		}
		b.vals[i], b.found[i] = get(b.q[i])
		if timed {
			b.took[i/stride] = time.Since(start)
		}
		if b.found[i] {
			hits++
		}
	}
	return hits
}
