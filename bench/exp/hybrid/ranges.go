package hybrid

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var hybridRanges = &contest.Experiment{
	Name:     "hybrid-ranges",
	About:    "RangeBatch of 1 to 32 matches on CPU, on both and on the GPU, uint64 to uint64",
	Figure:   "fig. 17 of the " + contest.Paper16,
	Per:      "one range with all its matches copied out",
	CaseName: "matches",
	Sizes:    []int{64 * contest.Mega},
	Queries:  4 * contest.Mega,
	Faster:   "x CPU",
	Extra:    []contest.ExtraColumn{{Name: contest.ColPerMatch, Format: contest.Number}},
	Run:      runHybridRanges,
}

// largeRangeBatch is the number of ranges in one call: enough that the copies
// and launches of a GPU are a small part of it, and that the results fit into
// memory.
const largeRangeBatch = 256 * contest.Kilo

func runHybridRanges(s *contest.Session) error {
	const perRange = 3*8 + 2*32*16 // bounds and rank; matches, until they are collected
	return rig.With(s, perRange, func(*rig.Rig) error {
		const trees = 1 + 3*1.25 // the pairs, and three trees of them
		return data.EachFitting(s, trees*data.PairBytes[uint64](), perRange, func(d *data.Dataset[uint64]) error {
			systems, err := ours.OpenAll(s, d, ours.NameCPU, ours.NameHybrid, ours.NameGPU)
			if err != nil {
				return err
			}
			defer peers.CloseAll(systems)
			for matches := 1; matches <= min(32, len(d.Keys)); matches *= 2 {
				if err := s.Compete(newLargeRanges(s, d, matches).contest(systems)); err != nil {
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
	s       *contest.Session
	d       *data.Dataset[uint64]
	lo, hi  []uint64
	first   []uint64 // rank of lo in the dataset
	matches int
}

func newLargeRanges(s *contest.Session, d *data.Dataset[uint64], matches int) *largeRanges {
	n := s.Queries
	return &largeRanges{s: s, d: d, lo: make([]uint64, n), hi: make([]uint64, n), first: make([]uint64, n), matches: matches}
}

// fresh draws ranges with the wanted number of matches, each from a key to a
// key.
func (r *largeRanges) fresh(round int) {
	data.DrawPieces(r.s.Seed, uint64(round+1), r.first, func(rng *rand.Rand, first []uint64) {
		for i := range first {
			first[i] = rng.Uint64N(uint64(len(r.d.Keys) - r.matches + 1))
		}
	})
	contest.Spread(contest.AllCores(), len(r.first), func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			at := int(r.first[i])
			r.lo[i], r.hi[i] = r.d.Keys[at], r.d.Keys[at+r.matches-1]
		}
		return 0
	})
}

func (r *largeRanges) contest(systems []*ours.Placed[uint64]) *contest.Contest {
	c := &contest.Contest{N: len(r.d.Keys), Threads: contest.AllCores(), Label: strconv.Itoa(r.matches), Ops: len(r.lo), Fresh: r.fresh}
	for i, sys := range systems {
		sub := r.subject(sys)
		sub.Reference = i == 0
		c.Subjects = append(c.Subjects, sub)
	}
	return c
}

// subject answers the ranges batch by batch. Each batch is timed, then checked
// and dropped.
func (r *largeRanges) subject(sys *ours.Placed[uint64]) *contest.Subject {
	var took time.Duration
	return &contest.Subject{
		System: sys.Name(), Bytes: sys.BytesPerEntry(), PerOp: r.matches,
		Do: func(ops int) error {
			took = 0
			for lo := 0; lo < ops; lo += largeRangeBatch {
				hi := min(lo+largeRangeBatch, ops)
				var out peers.Flat[uint64]
				start := time.Now()
				ours.FrozenMap[uint64]{Frozen: sys.Frozen}.Ranges(r.lo[lo:hi], r.hi[lo:hi], &out)
				took += time.Since(start)
				if err := r.compare(lo, hi, &out); err != nil {
					return err
				}
			}
			return work.Failed(sys)
		},
		Clock: func() time.Duration { return took },
		Check: func(int) error { return nil }, // already done
		Reset: runtime.GC,                     // the answers are garbage, and the collector is off
	}
}

// compare checks every entry of the ranges [lo, hi).
func (r *largeRanges) compare(lo, hi int, out *peers.Flat[uint64]) error {
	n := hi - lo
	if len(out.Ends) != n || len(out.Keys) != n*r.matches || len(out.Vals) != n*r.matches {
		return fmt.Errorf("%d ranges with %d keys and %d values; they should be %d and %d",
			len(out.Ends), len(out.Keys), len(out.Vals), n, n*r.matches)
	}
	var wrong atomic.Int64 // 1 + the number of a range
	contest.Spread(contest.AllCores(), n, func(from, to int) int {
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
func (r *largeRanges) isRange(at, i int, out *peers.Flat[uint64]) bool {
	if out.Ends[i] != (i+1)*r.matches {
		return false
	}
	first := int(r.first[at])
	for j := range r.matches {
		if k := r.d.Keys[first+j]; out.Keys[i*r.matches+j] != k || out.Vals[i*r.matches+j] != data.ValueOf(k) {
			return false
		}
	}
	return true
}
