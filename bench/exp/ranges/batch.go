package ranges

import (
	"runtime"
	"strconv"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var rangeQueries = &contest.Experiment{
	Name:     "range",
	About:    "RangeBatch of 1 to 32 matches, and scans of all entries, uint64 to uint64",
	Figure:   "fig. 17, CPU line, of the " + contest.Paper16,
	Per:      "one range with all its matches copied out and read; in a scan, one entry",
	CaseName: "matches",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: contest.ColPerMatch, Format: contest.Number}},
	Run:      runRange,
}

// rangeBatch is the number of ranges in one call: results of some hundred
// kilobytes, as a caller would request at a time.
const rangeBatch = 4 * contest.Kilo

func runRange(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		makers := append(ours.Layouts[uint64](), peers.MakeTidwallMap[uint64](), peers.MakeTidwallG[uint64](),
			peers.MakeGoogle[uint64](), peers.MakeBinarySearch[uint64]())
		systems, err := peers.BuildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		for _, threads := range s.Threads {
			for matches := 1; matches <= min(32, len(d.Keys)); matches *= 2 {
				if err := s.Compete(rangeContest(s, d, systems, threads, matches)); err != nil {
					return err
				}
			}
		}
		return s.Compete(scanContest(s, d, systems))
	})
}

// ranges holds the queries of a round and the sum they must add up to.
type ranges[W data.Word] struct {
	d       *data.Dataset[W]
	lo, hi  []W
	first   []int // rank of lo in the dataset
	matches int
}

// fresh draws ranges with the wanted number of matches, each from a key to a
// key.
func (r *ranges[W]) fresh(s *contest.Session, round int) {
	rng := data.RoundRand(s, round)
	for i := range r.lo {
		at := rng.IntN(len(r.d.Keys) - r.matches + 1)
		r.lo[i], r.hi[i], r.first[i] = r.d.Keys[at], r.d.Keys[at+r.matches-1], at
	}
}

// want returns the expected tally of the first ops ranges.
func (r *ranges[W]) want(ops int) (t work.Tally[W]) {
	for _, at := range r.first[:ops] {
		t.Add(&peers.Flat[W]{Keys: r.d.Keys[at : at+r.matches], Vals: r.d.Vals[at : at+r.matches]})
	}
	return t
}

func rangeContest[W data.Word](s *contest.Session, d *data.Dataset[W], systems []peers.System[W], threads, matches int) *contest.Contest {
	ops := max(1, s.Queries/max(1, matches/2))
	r := &ranges[W]{d: d, lo: make([]W, ops), hi: make([]W, ops), first: make([]int, ops), matches: matches}
	c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: strconv.Itoa(matches), Ops: ops,
		Fresh: func(round int) { r.fresh(s, round) }}
	for i, sys := range systems {
		c.Subjects = append(c.Subjects, r.subject(sys, threads, i == 0 && contest.IsPando(sys.Name())))
	}
	return c
}

func (r *ranges[W]) subject(sys peers.System[W], threads int, reference bool) *contest.Subject {
	asked := sys.(peers.Ranger[W])
	var got work.Tally[W]
	return &contest.Subject{
		System: sys.Name(), Bytes: sys.BytesPerEntry(), PerOp: r.matches, Reference: reference,
		Do:    func(ops int) error { got = r.ask(asked, threads, ops); return nil },
		Check: func(ops int) error { return work.CompareTally(got, r.want(ops)) },
		Reset: runtime.GC, // the answers are garbage, and the collector is off
	}
}

// ask answers the first ops ranges, batch by batch.
func (r *ranges[W]) ask(sys peers.Ranger[W], threads, ops int) (sum work.Tally[W]) {
	parts := make([]work.Tally[W], threads)
	contest.Spread(threads, threads, func(first, end int) int {
		for t := first; t < end; t++ {
			parts[t] = r.askPart(sys, ops*t/threads, ops*(t+1)/threads)
		}
		return 0
	})
	for _, p := range parts {
		sum.Entries += p.Entries
		sum.KeySum += p.KeySum
		sum.Sums += p.Sums
	}
	return sum
}

func (r *ranges[W]) askPart(sys peers.Ranger[W], lo, hi int) (sum work.Tally[W]) {
	var out peers.Flat[W]
	for ; lo < hi; lo += rangeBatch {
		end := min(lo+rangeBatch, hi)
		sys.Ranges(r.lo[lo:end], r.hi[lo:end], &out)
		sum.Add(&out)
	}
	return sum
}

// scanContest iterates over all entries, on one thread.
func scanContest[W data.Word](s *contest.Session, d *data.Dataset[W], systems []peers.System[W]) *contest.Contest {
	want := work.Tally[W]{Entries: len(d.Keys)}
	want.KeySum, want.Sums = peers.NewBinarySearch(d).Scan()
	c := &contest.Contest{N: len(d.Keys), Threads: 1, Label: "scan", Ops: len(d.Keys)}
	for i, sys := range systems {
		name := sys.Name()
		if f, ok := sys.(ours.FrozenMap[W]); ok {
			c.Subjects = append(c.Subjects, scanSubject(name+", All", sys, want, i == 0, f.Scan))
			c.Subjects = append(c.Subjects, scanSubject(name+", Range", sys, want, false, f.ScanRange))
			continue
		}
		c.Subjects = append(c.Subjects, scanSubject(name, sys, want, false, sys.(peers.Ranger[W]).Scan))
	}
	return c
}

func scanSubject[W data.Word](name string, sys peers.System[W], want work.Tally[W], reference bool, scan func() (W, W)) *contest.Subject {
	got := work.Tally[W]{Entries: want.Entries}
	return &contest.Subject{
		System: name, Bytes: sys.BytesPerEntry(), PerOp: 1, Reference: reference, Whole: true,
		Do:    func(int) error { got.KeySum, got.Sums = scan(); return nil },
		Check: func(int) error { return work.CompareTally(got, want) },
	}
}
