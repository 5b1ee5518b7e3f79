package fast

import (
	"runtime"
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/papers/fast"
)

var responseTime = &contest.Experiment{
	Name:     "response-time",
	About:    "ranks in batches of 64 to 16M: throughput and response time, unbuffered, compressed, buffered and sorted",
	Figure:   "fig. 11 of the " + contest.Paper10,
	Per:      "one rank; a batch is one call",
	CaseName: "keys, batch",
	Sizes:    []int{64 * contest.Mega},
	Queries:  16 * contest.Mega,
	Threads:  []int{runtime.NumCPU()},
	Extra:    []contest.ExtraColumn{{Name: colResponse, Format: contest.Number}},
	Run:      runResponseTime,
}

// colResponse is the time of a batch: none of its answers can be used earlier.
const colResponse = "response ms"

func runResponseTime(s *contest.Session) error {
	if err := responseRows[uint32](s); err != nil {
		return err
	}
	return responseRows[uint64](s)
}

func responseRows[W data.Word](s *contest.Session) error {
	for _, n := range s.Sizes {
		debug.FreeOSMemory() // frees the memory of the previous size
		key := data.PairBytes[W]() / 2
		if !s.Room(data.WidthName[W]()+" keys and two trees", n, 3.6*key, "use a smaller --n") {
			continue
		}
		s.Say("making %s random keys of %d bits ...", contest.SizeText(n), data.BitsOf[W]())
		d := &data.Dataset[W]{Keys: data.SortedKeys[W](n, s.Seed)}
		if err := withBothTrees(s, d, func(plain, small inside.Searched[W]) error {
			for _, threads := range s.Threads {
				if err := responseContests(s, d, plain, small, threads); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// withBothTrees calls body with the keys in Pando's usual tree and in a packed
// one.
func withBothTrees[W data.Word](s *contest.Session, d *data.Dataset[W], body func(plain, small inside.Searched[W]) error) error {
	s.Say("building both trees, %s ...", contest.SizeText(len(d.Keys)))
	plain, err := inside.BuildKeys(d)
	if err != nil {
		return err
	}
	defer plain.Release()
	small, err := inside.BuildPacked(d, 0)
	if err != nil {
		return err
	}
	defer small.Release()
	return body(plain, small)
}

// batchSizes returns the sizes tried: from the paper's number of concurrent
// queries to all queries of a round.
func batchSizes(most int) (out []int) {
	for size := 64; size <= 16*contest.Mega && size <= most; size *= 4 {
		out = append(out, size)
	}
	return out
}

// inBatches asks batch by batch.
type inBatches[W data.Word] struct {
	of    fast.Ranker[W]
	batch int
}

func (b inBatches[W]) Rank(q []W, ranks []int) {
	for len(q) > 0 {
		n := min(len(q), b.batch)
		b.of.Rank(q[:n], ranks[:n])
		q, ranks = q[n:], ranks[n:]
	}
}

// byScheme is a schedule of its own for a scheme: it learns how long queries
// take.
func byScheme[W data.Word](tree inside.Searched[W], scheme inside.Scheme, n, threads int) fast.Ranker[W] {
	cpu := inside.NewCPU(tree, n, threads)
	cpu.SetScheme(scheme)
	return cpu
}

func responseContests[W data.Word](s *contest.Session, d *data.Dataset[W], plain, small inside.Searched[W], threads int) error {
	r := work.NewRanks(s, d)
	for _, batch := range batchSizes(s.Queries) {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: data.WidthName[W]() + ", " + contest.SizeText(batch), Ops: len(r.Q),
			Fresh: func(round int) { data.DrawPieces(s.Seed, uint64(round+1), r.Q, d.Between) }}
		for i, way := range []struct {
			name string
			of   fast.Ranker[W]
		}{
			{"Pando, as it chooses", byScheme(plain, inside.Auto, len(d.Keys), threads)},
			{"Pando unbuffered", byScheme(plain, inside.Unbuffered, len(d.Keys), threads)},
			{"Pando unbuffered, compressed", byScheme(small, inside.Unbuffered, len(d.Keys), threads)},
			{"Pando buffered", byScheme(plain, inside.Partitioned, len(d.Keys), threads)},
			{"Pando sorted", fast.NewSorted(plain, threads)},
		} {
			sub, err := r.Batches(way.name, 0, inBatches[W]{way.of, batch}, 1) // the schedule has threads of its own
			if err != nil {
				return err
			}
			sub.Reference = i == 0
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
		for _, row := range s.Latest(c) {
			row.Set(colResponse, row.Median*float64(min(batch, row.Ops))/1e6)
		}
	}
	return nil
}
