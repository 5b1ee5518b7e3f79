package main

import "slices"

var pointU64 = &experiment{
	name:   "point-u64",
	about:  "a batch of Get, uint64 to uint64, random hits, beside every peer",
	figure: "fig. 16(a), CPU line, of the " + paper16 + "; fig. 9 without FAST",
	per:    "one key looked up",
	sizes:  usualSizes,
	run:    runPoint[uint64],
}

var pointU32 = &experiment{
	name:   "point-u32",
	about:  "a batch of Get, uint32 to uint32, random hits, beside every peer",
	figure: "fig. 16(b), CPU line, of the " + paper16,
	per:    "one key looked up",
	sizes:  usualSizes,
	run:    runPoint[uint32],
}

// peerMakers returns every system of Go that is not Pando.
func peerMakers[W word]() []maker[W] {
	return []maker[W]{
		makeTidwallMap[W](), makeTidwallG[W](), makeGoogle[W](), makeART[W](),
		makeBinarySearch[W](), makeGoMap[W](),
	}
}

// forEachSize runs an experiment's body once per size, with a dataset that is
// dropped afterwards.
func forEachSize[W word](s *session, body func(d *dataset[W]) error) error {
	for _, n := range s.sizes {
		d, err := newDataset[W](s, n)
		if err != nil {
			return err
		}
		if err := body(d); err != nil {
			return err
		}
	}
	return nil
}

func runPoint[W word](s *session) error {
	return forEachSize(s, func(d *dataset[W]) error {
		return pointContests(s, d, slices.Concat(pandoLayouts[W](), peerMakers[W](), cppMakers[W](s)))
	})
}

// pointContests builds the systems, and the limit's block.
func pointContests[W word](s *session, d *dataset[W], makers []maker[W]) error {
	return withLimit(s, pairBytes[W](), len(d.keys), func(limit *readLimit) error {
		systems, err := buildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer closeAll(systems)
		return hitContests(s, d, systems, limit)
	})
}

// hitContests lets the systems answer random hits on each number of threads.
func hitContests[W word](s *session, d *dataset[W], systems []system[W], limit *readLimit) error {
	l := newLookups(s, d)
	for _, threads := range s.threads {
		c, err := l.contest(systems, limit, threads, "", d.hits, allHits)
		if err != nil {
			return err
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}
