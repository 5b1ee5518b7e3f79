package main

import (
	"fmt"
	"runtime"
	"strconv"
)

var rangeQueries = &experiment{
	name:     "range",
	about:    "RangeBatch of 1 to 32 matches, and scans of all entries, uint64 to uint64",
	figure:   "fig. 17, CPU line, of the " + paper16,
	per:      "one range with all its matches copied out and read; in a scan, one entry",
	caseName: "matches",
	sizes:    usualSizes,
	extra:    []extraColumn{{colPerMatch, number}},
	run:      runRange,
}

// rangeBatch is the number of ranges in one call: results of some hundred
// kilobytes, as a caller would request at a time.
const rangeBatch = 4 * kilo

func runRange(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		makers := append(pandoLayouts[uint64](), makeTidwallMap[uint64](), makeTidwallG[uint64](),
			makeGoogle[uint64](), makeBinarySearch[uint64]())
		systems, err := buildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer closeAll(systems)
		for _, threads := range s.threads {
			for matches := 1; matches <= min(32, len(d.keys)); matches *= 2 {
				if err := s.compete(rangeContest(s, d, systems, threads, matches)); err != nil {
					return err
				}
			}
		}
		return s.compete(scanContest(s, d, systems))
	})
}

// ranges holds the queries of a round and the sum they must add up to.
type ranges[W word] struct {
	d       *dataset[W]
	lo, hi  []W
	first   []int // rank of lo in the dataset
	matches int
}

// fresh draws ranges with the wanted number of matches, each from a key to a
// key.
func (r *ranges[W]) fresh(s *session, round int) {
	rng := s.roundRand(round)
	for i := range r.lo {
		at := rng.IntN(len(r.d.keys) - r.matches + 1)
		r.lo[i], r.hi[i], r.first[i] = r.d.keys[at], r.d.keys[at+r.matches-1], at
	}
}

// tally is the sum of the answers. Every system's answers are read once, as a
// caller would.
type tally[W word] struct {
	entries      int
	keySum, sums W
}

func (t *tally[W]) add(out *flat[W]) {
	t.entries += len(out.keys)
	for i, k := range out.keys {
		t.keySum += k
		t.sums += out.vals[i]
	}
}

// want returns the expected tally of the first ops ranges.
func (r *ranges[W]) want(ops int) (t tally[W]) {
	for _, at := range r.first[:ops] {
		t.add(&flat[W]{keys: r.d.keys[at : at+r.matches], vals: r.d.vals[at : at+r.matches]})
	}
	return t
}

func rangeContest[W word](s *session, d *dataset[W], systems []system[W], threads, matches int) *contest {
	ops := max(1, s.queries/max(1, matches/2))
	r := &ranges[W]{d: d, lo: make([]W, ops), hi: make([]W, ops), first: make([]int, ops), matches: matches}
	c := &contest{n: len(d.keys), threads: threads, label: strconv.Itoa(matches), ops: ops,
		fresh: func(round int) { r.fresh(s, round) }}
	for i, sys := range systems {
		c.subjects = append(c.subjects, r.subject(sys, threads, i == 0 && isPando(sys.Name())))
	}
	return c
}

func (r *ranges[W]) subject(sys system[W], threads int, reference bool) *subject {
	asked := sys.(ranger[W])
	var got tally[W]
	return &subject{
		system: sys.Name(), bytes: sys.BytesPerEntry(), perOp: r.matches, reference: reference,
		do:    func(ops int) error { got = r.ask(asked, threads, ops); return nil },
		check: func(ops int) error { return compareTally(got, r.want(ops)) },
		reset: runtime.GC, // the answers are garbage, and the collector is off
	}
}

// ask answers the first ops ranges, batch by batch.
func (r *ranges[W]) ask(sys ranger[W], threads, ops int) (sum tally[W]) {
	parts := make([]tally[W], threads)
	spread(threads, threads, func(first, end int) int {
		for t := first; t < end; t++ {
			parts[t] = r.askPart(sys, ops*t/threads, ops*(t+1)/threads)
		}
		return 0
	})
	for _, p := range parts {
		sum.entries += p.entries
		sum.keySum += p.keySum
		sum.sums += p.sums
	}
	return sum
}

func (r *ranges[W]) askPart(sys ranger[W], lo, hi int) (sum tally[W]) {
	var out flat[W]
	for ; lo < hi; lo += rangeBatch {
		end := min(lo+rangeBatch, hi)
		sys.Ranges(r.lo[lo:end], r.hi[lo:end], &out)
		sum.add(&out)
	}
	return sum
}

func compareTally[W word](got, want tally[W]) error {
	if got != want {
		return fmt.Errorf("wrong answers: %d entries with sums %#x and %#x; they should be %d, %#x and %#x",
			got.entries, got.keySum, got.sums, want.entries, want.keySum, want.sums)
	}
	return nil
}

// scanContest iterates over all entries, on one thread.
func scanContest[W word](s *session, d *dataset[W], systems []system[W]) *contest {
	want := tally[W]{entries: len(d.keys)}
	want.keySum, want.sums = (&binarySearch[W]{d}).Scan()
	c := &contest{n: len(d.keys), threads: 1, label: "scan", ops: len(d.keys)}
	for i, sys := range systems {
		name := sys.Name()
		if f, ok := sys.(frozenMap[W]); ok {
			c.subjects = append(c.subjects, scanSubject(name+", All", sys, want, i == 0, f.Scan))
			c.subjects = append(c.subjects, scanSubject(name+", Range", sys, want, false, f.scanRange))
			continue
		}
		c.subjects = append(c.subjects, scanSubject(name, sys, want, false, sys.(ranger[W]).Scan))
	}
	return c
}

func scanSubject[W word](name string, sys system[W], want tally[W], reference bool, scan func() (W, W)) *subject {
	got := tally[W]{entries: want.entries}
	return &subject{
		system: name, bytes: sys.BytesPerEntry(), perOp: 1, reference: reference, whole: true,
		do:    func(int) error { got.keySum, got.sums = scan(); return nil },
		check: func(int) error { return compareTally(got, want) },
	}
}
