package main

import (
	"runtime"
	"runtime/debug"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packed"
	"github.com/pando-index/pando/papers/fast"
)

var responseTime = &experiment{
	name:     "response-time",
	about:    "ranks in batches of 64 to 16M: throughput and response time, unbuffered, compressed, buffered and sorted",
	figure:   "fig. 11 of the " + paper10,
	per:      "one rank; a batch is one call",
	caseName: "keys, batch",
	sizes:    []int{64 * mega},
	queries:  16 * mega,
	threads:  []int{runtime.NumCPU()},
	extra:    []extraColumn{{colResponse, number}},
	run:      runResponseTime,
}

// colResponse is the time of a batch: none of its answers can be used earlier.
const colResponse = "response ms"

func runResponseTime(s *session) error {
	if err := responseRows[uint32](s); err != nil {
		return err
	}
	return responseRows[uint64](s)
}

func responseRows[W word](s *session) error {
	for _, n := range s.sizes {
		debug.FreeOSMemory() // frees the memory of the previous size
		key := pairBytes[W]() / 2
		if !s.room(widthName[W]()+" keys and two trees", n, 3.6*key, "use a smaller --n") {
			continue
		}
		s.say("making %s random keys of %d bits ...", sizeText(n), bitsOf[W]())
		d := &dataset[W]{keys: sortedKeys[W](n, s.seed)}
		if err := withBothTrees(s, d, func(plain, small exec.Layout[W]) error {
			for _, threads := range s.threads {
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
func withBothTrees[W word](s *session, d *dataset[W], body func(plain, small exec.Layout[W]) error) error {
	s.say("building both trees, %s ...", sizeText(len(d.keys)))
	src := layout.Source[W]{Len: len(d.keys), Codes: d.keys}
	cfg := implicit.Config{Leaves: implicit.Apart, Pages: arena.HugeAll, Workers: allCores()}
	plain, err := implicit.Build(src, cfg)
	if err != nil {
		return err
	}
	defer plain.Release()
	small, err := packed.Build(src, cfg)
	if err != nil {
		return err
	}
	defer small.Release()
	return body(plain, small)
}

// batchSizes returns the sizes tried: from the paper's number of concurrent
// queries to all queries of a round.
func batchSizes(most int) (out []int) {
	for size := 64; size <= 16*mega && size <= most; size *= 4 {
		out = append(out, size)
	}
	return out
}

// inBatches asks batch by batch.
type inBatches[W word] struct {
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
func byScheme[W word](tree exec.Layout[W], scheme exec.Scheme, n, threads int) fast.Ranker[W] {
	cpu := exec.NewCPU(tree, n, threads)
	cpu.SetScheme(scheme)
	return cpuSchedule[W]{cpu}
}

func responseContests[W word](s *session, d *dataset[W], plain, small exec.Layout[W], threads int) error {
	r := newRanks(s, d)
	for _, batch := range batchSizes(s.queries) {
		c := &contest{n: len(d.keys), threads: threads, label: widthName[W]() + ", " + sizeText(batch), ops: len(r.q),
			fresh: func(round int) { drawPieces(s.seed, uint64(round+1), r.q, d.between) }}
		for i, way := range []struct {
			name string
			of   fast.Ranker[W]
		}{
			{"Pando, as it chooses", byScheme(plain, exec.Auto, len(d.keys), threads)},
			{"Pando unbuffered", byScheme(plain, exec.Unbuffered, len(d.keys), threads)},
			{"Pando unbuffered, compressed", byScheme(small, exec.Unbuffered, len(d.keys), threads)},
			{"Pando buffered", byScheme(plain, exec.Partitioned, len(d.keys), threads)},
			{"Pando sorted", fast.NewSorted(plain, threads)},
		} {
			sub, err := r.batches(way.name, 0, inBatches[W]{way.of, batch}, 1) // the schedule has threads of its own
			if err != nil {
				return err
			}
			sub.reference = i == 0
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
		for _, row := range s.latest(c) {
			row.set(colResponse, row.Median*float64(min(batch, row.Ops))/1e6)
		}
	}
	return nil
}
