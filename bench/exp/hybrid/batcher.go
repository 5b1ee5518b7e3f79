package hybrid

import (
	"slices"
	"strconv"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var batcherExp = &contest.Experiment{
	Name:     "batcher",
	About:    "many goroutines that look up one key at a time: Get, and Batcher.Get on the CPU and on the GPU",
	Per:      "one call",
	CaseName: "goroutines",
	Sizes:    []int{64 * contest.Mega},
	Queries:  4 * contest.Mega,
	Faster:   "x Get",
	Extra:    []contest.ExtraColumn{{Name: colMedianCall, Format: contest.Number}, {Name: colSlowCall, Format: contest.Number}},
	Run:      runBatcher,
}

// Latency of a call: the 50th and the 99th percentile.
const (
	colMedianCall = "p50 µs"
	colSlowCall   = "p99 µs"
)

// callers are the numbers of goroutines: those of the target, and as
// many as fill a Batcher's batch.
var callers = []int{64, 16 * contest.Kilo}

// batcherSeconds bounds the time of a system in a round: waiting calls are
// slow, and half a second of them is plenty.
const batcherSeconds = 0.5

func runBatcher(s *contest.Session) error {
	s.Seconds = min(s.Seconds, batcherSeconds)
	if err := rig.LookAtGPU(s); err != nil {
		return err
	}
	const trees = 1 + 2*1.25 // the pairs, and two trees of them
	return data.EachFitting(s, trees*data.PairBytes[uint64](), work.BulkBytes[uint64]()+8, func(d *data.Dataset[uint64]) error {
		systems, err := ours.OpenAll(s, d, ours.NameCPU, ours.NameGPU)
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		b := &calls{work.NewBulk(s, d), make([]time.Duration, s.Queries)}
		for _, goroutines := range callers {
			if err := b.compare(systems, goroutines); err != nil {
				return err
			}
		}
		return nil
	})
}

// calls are lookups of one key each, some of them timed.
type calls struct {
	*work.Bulk[uint64]
	took []time.Duration
}

// compare lets the given number of goroutines call Get, default Batchers, and
// Batchers that answer as soon as all goroutines have asked.
func (b *calls) compare(systems []*ours.Placed[uint64], goroutines int) error {
	c := b.Contest(strconv.Itoa(goroutines))
	plain := b.caller(contest.Pando+" Get", goroutines, systems[0].Ix.Get, 64)
	plain.Reference = true
	asked := []*caller{plain}
	for _, sys := range systems {
		for _, size := range []int{0, goroutines} {
			name := sys.Name() + ", Batcher"
			if size > 0 {
				name += " of " + contest.SizeText(size)
			}
			get, stop := sys.Batcher(size)
			defer stop() // nobody waits any more
			asked = append(asked, b.caller(name, goroutines, get, 1))
		}
	}
	for _, k := range asked {
		c.Subjects = append(c.Subjects, k.Subject)
	}
	if err := b.S.Compete(c); err != nil {
		return err
	}
	for i, r := range b.S.Latest(c) {
		k, warm := asked[i], len(asked[i].half)-b.S.Rounds
		r.Set(colMedianCall, contest.Median(k.half[warm:]))
		r.Set(colSlowCall, contest.Median(k.slow[warm:]))
	}
	return nil
}

// caller is a subject with the latencies of its calls, in microseconds: half
// is the 50th percentile and slow the 99th, one of each per round and per
// warm-up.
type caller struct {
	*contest.Subject
	half, slow []float64
}

// caller returns a subject that calls get from the given number of goroutines.
// One call in stride is timed: reading the clock takes a good part of the time
// of a plain Get.
func (b *calls) caller(name string, goroutines int, get func(uint64) (uint64, bool), stride int) *caller {
	var hits int
	k := &caller{}
	k.Subject = &contest.Subject{
		System: name,
		Do: func(ops int) error {
			hits = contest.Spread(goroutines, ops, func(lo, hi int) int { return b.each(get, lo, hi, stride) })
			return nil
		},
		Check: func(ops int) error {
			took := slices.Sorted(slices.Values(b.took[:(ops+stride-1)/stride]))
			k.half = append(k.half, micros(took[len(took)/2]))
			k.slow = append(k.slow, micros(took[len(took)*99/100]))
			return b.Check(ops, hits)
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
		b.Vals[i], b.Found[i] = get(b.Q[i])
		if timed {
			b.took[i/stride] = time.Since(start)
		}
		if b.Found[i] {
			hits++
		}
	}
	return hits
}
