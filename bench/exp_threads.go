package main

var threadsExp = &experiment{
	name:    "threads",
	about:   "a batch of Get on 1, 2, ... threads",
	per:     "one key looked up, all threads together",
	sizes:   usualSizes,
	threads: allThreads(),
	extra:   []extraColumn{{colSpeedup, ratio}},
	run:     runThreads,
}

const colSpeedup = "speed-up"

func runThreads(s *session) error {
	err := forEachSize(s, func(d *dataset[uint64]) error {
		makers := []maker[uint64]{makePandoPairs[uint64](), makeTidwallMap[uint64](), makeBinarySearch[uint64](), makeGoMap[uint64]()}
		return pointContests(s, d, makers)
	})
	if err != nil {
		return err
	}
	s.compareTo(colSpeedup, func(r *row) bool { return r.Threads == s.threads[0] },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N })
	return nil
}

// compareTo fills a column with the speed of each row relative to its base:
// the row for which base returns true and that same considers equal.
func (s *session) compareTo(column string, base func(*row) bool, same func(a, b *row) bool) {
	for _, r := range s.rows {
		for _, b := range s.rows {
			if base(b) && same(r, b) {
				r.set(column, b.Median/r.Median)
				break
			}
		}
	}
}
