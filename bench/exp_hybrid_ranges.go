package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

var hybridRanges = &experiment{
	name:     "hybrid-ranges",
	about:    "RangeBatch of 1 to 32 matches on CPU, on both and on the GPU, uint64 to uint64",
	figure:   "fig. 17 of the " + paper16,
	per:      "one range with all its matches copied out",
	caseName: "matches",
	sizes:    []int{64 * mega},
	queries:  4 * mega,
	faster:   "x CPU",
	extra:    []extraColumn{{colPerMatch, number}},
	run:      runHybridRanges,
}

// largeRangeBatch is the number of ranges in one call: enough that the copies
// and launches of a GPU are a small part of it, and that the results fit into
// memory.
const largeRangeBatch = 256 * kilo

func runHybridRanges(s *session) error {
	const perRange = 3*8 + 2*32*16 // bounds and rank; matches, until they are collected
	return withGPU(s, perRange, func(*gpuRig) error {
		const trees = 1 + 3*1.25 // the pairs, and three trees of them
		return eachFitting(s, trees*pairBytes[uint64](), perRange, func(d *dataset[uint64]) error {
			systems, err := openAll(s, d, namePandoCPU, namePandoHybrid, namePandoGPU)
			if err != nil {
				return err
			}
			defer closeAll(systems)
			for matches := 1; matches <= min(32, len(d.keys)); matches *= 2 {
				if err := s.compete(newLargeRanges(s, d, matches).contest(systems)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// largeRanges holds the queries of a round. Answers are compared entry by
// entry, so nothing has to be read while the time is taken.
type largeRanges struct {
	s       *session
	d       *dataset[uint64]
	lo, hi  []uint64
	first   []uint64 // rank of lo in the dataset
	matches int
}

func newLargeRanges(s *session, d *dataset[uint64], matches int) *largeRanges {
	n := s.queries
	return &largeRanges{s: s, d: d, lo: make([]uint64, n), hi: make([]uint64, n), first: make([]uint64, n), matches: matches}
}

// fresh draws ranges with the wanted number of matches, each from a key to a
// key.
func (r *largeRanges) fresh(round int) {
	drawPieces(r.s.seed, uint64(round+1), r.first, func(rng *rand.Rand, first []uint64) {
		for i := range first {
			first[i] = rng.Uint64N(uint64(len(r.d.keys) - r.matches + 1))
		}
	})
	spread(allCores(), len(r.first), func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			at := int(r.first[i])
			r.lo[i], r.hi[i] = r.d.keys[at], r.d.keys[at+r.matches-1]
		}
		return 0
	})
}

func (r *largeRanges) contest(systems []*placed[uint64]) *contest {
	c := &contest{n: len(r.d.keys), threads: allCores(), label: strconv.Itoa(r.matches), ops: len(r.lo), fresh: r.fresh}
	for i, sys := range systems {
		sub := r.subject(sys)
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return c
}

// subject answers the ranges batch by batch. Each batch is timed, then checked
// and dropped.
func (r *largeRanges) subject(sys *placed[uint64]) *subject {
	var took time.Duration
	return &subject{
		system: sys.Name(), bytes: sys.BytesPerEntry(), perOp: r.matches,
		do: func(ops int) error {
			took = 0
			for lo := 0; lo < ops; lo += largeRangeBatch {
				hi := min(lo+largeRangeBatch, ops)
				var out flat[uint64]
				start := time.Now()
				frozenMap[uint64]{sys.frozen}.Ranges(r.lo[lo:hi], r.hi[lo:hi], &out)
				took += time.Since(start)
				if err := r.compare(lo, hi, &out); err != nil {
					return err
				}
			}
			return failed(sys)
		},
		clock: func() time.Duration { return took },
		check: func(int) error { return nil }, // already done
		reset: runtime.GC,                     // the answers are garbage, and the collector is off
	}
}

// compare checks every entry of the ranges [lo, hi).
func (r *largeRanges) compare(lo, hi int, out *flat[uint64]) error {
	n := hi - lo
	if len(out.ends) != n || len(out.keys) != n*r.matches || len(out.vals) != n*r.matches {
		return fmt.Errorf("%d ranges with %d keys and %d values; they should be %d and %d",
			len(out.ends), len(out.keys), len(out.vals), n, n*r.matches)
	}
	var wrong atomic.Int64 // 1 + the number of a range
	spread(allCores(), n, func(from, to int) int {
		for i := from; i < to; i++ {
			if !r.isRange(lo+i, i, out) {
				wrong.Store(int64(lo+i) + 1)
			}
		}
		return 0
	})
	if at := int(wrong.Load()); at > 0 {
		return fmt.Errorf("wrong entries for the range from %d to %d", r.lo[at-1], r.hi[at-1])
	}
	return nil
}

// isRange reports whether range i of the answers is range number at of the
// round.
func (r *largeRanges) isRange(at, i int, out *flat[uint64]) bool {
	if out.ends[i] != (i+1)*r.matches {
		return false
	}
	first := int(r.first[at])
	for j := range r.matches {
		if k := r.d.keys[first+j]; out.keys[i*r.matches+j] != k || out.vals[i*r.matches+j] != valueOf(k) {
			return false
		}
	}
	return true
}
