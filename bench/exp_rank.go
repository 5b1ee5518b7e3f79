package main

import "fmt"

var rankU32 = &experiment{
	name:   "rank-u32",
	about:  "a batch of Rank over uint32 keys without values, hits and misses",
	figure: "fig. 16(b), CPU line, of the " + paper16 + ", without the values",
	per:    "one rank",
	sizes:  usualSizes,
	run:    runRankU32,
}

// ranks is a contest of batches of Rank.
type ranks[W word] struct {
	s     *session
	d     *dataset[W]
	q     []W
	ranks []int
}

func newRanks[W word](s *session, d *dataset[W]) *ranks[W] {
	return &ranks[W]{s: s, d: d, q: make([]W, s.queries), ranks: make([]int, s.queries)}
}

// batches returns a subject that answers all queries at once.
func (r *ranks[W]) batches(name string, bytes float64, sys ranker[W], threads int) (*subject, error) {
	parts := threads
	if t, ok := sys.(threaded); ok {
		if err := t.SetThreads(threads); err != nil {
			return nil, err
		}
		parts = 1
	}
	return &subject{
		system: name,
		bytes:  bytes,
		do: func(ops int) error {
			spread(parts, ops, func(lo, hi int) int {
				sys.Rank(r.q[lo:hi], r.ranks[lo:hi])
				return 0
			})
			return nil
		},
		check: r.check,
	}, nil
}

// check checks every answer and wipes it.
func (r *ranks[W]) check(ops int) error {
	for i, k := range r.q[:ops] {
		if !r.d.isRank(k, r.ranks[i]) {
			return fmt.Errorf("wrong rank of key %d: %d", k, r.ranks[i])
		}
		r.ranks[i] = -1
	}
	return nil
}

func runRankU32(s *session) error {
	return forEachSize(s, func(d *dataset[uint32]) error {
		return withLimit(s, keyBytesU32, len(d.keys), func(limit *readLimit) error {
			s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
			set, err := openFrozenSet(d.keys)
			if err != nil {
				return err
			}
			defer set.Close()
			for _, threads := range s.threads {
				if err := rankContest(s, d, set, limit, threads); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

const keyBytesU32 = 4

func rankContest(s *session, d *dataset[uint32], set frozenSet[uint32], limit *readLimit, threads int) error {
	r := newRanks(s, d)
	c := &contest{n: len(d.keys), threads: threads, ops: len(r.q)}
	sub, err := r.batches(namePando, set.BytesPerEntry(), set, threads)
	if err != nil {
		return err
	}
	sub.reference = true
	c.subjects = append(c.subjects, sub)
	if s.wanted(nameBinary) {
		sub, err := r.batches(nameBinary, keyBytesU32, &binarySearch[uint32]{d}, threads)
		if err != nil {
			return err
		}
		c.subjects = append(c.subjects, sub)
	}
	if limit != nil {
		c.subjects = append(c.subjects, limit.subject(threads))
	}
	c.fresh = func(round int) {
		rng := s.roundRand(round)
		d.between(rng, r.q)
		if limit != nil {
			limit.fresh(rng)
		}
	}
	return s.compete(c)
}
