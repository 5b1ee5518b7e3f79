package main

import "fmt"

var singleGet = &experiment{
	name:     "single-get",
	about:    "Get, one key a call, uint64 to uint64, random hits",
	figure:   "fig. 20 at length 1, of the " + paper16,
	per:      "one call of Get",
	caseName: "calls",
	sizes:    usualSizes,
	run:      runSingle,
}

// The two cases of single-get.
const (
	callsDependent   = "each waits for the last"
	callsIndependent = "independent"
)

func runSingle(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		systems, err := buildAll(s, d, append(pandoLayouts[uint64](), peerMakers[uint64]()...))
		if err != nil {
			return err
		}
		defer closeAll(systems)
		l := newLookups(s, d)
		for _, threads := range s.threads {
			for _, label := range []string{callsDependent, callsIndependent} {
				if err := s.compete(l.singles(systems, threads, label)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// singles makes the contest. Pando's Get runs on the caller's goroutine, so it
// is spread over threads like the peers.
func (l *lookups[W]) singles(systems []system[W], threads int, label string) *contest {
	c := &contest{n: len(l.d.keys), threads: threads, label: label, ops: len(l.q)}
	c.fresh = func(round int) { l.fresh(round, l.d.hits, allHits) }
	for i, sys := range systems {
		asked, ok := sys.(single[W])
		if !ok {
			continue
		}
		sub := l.singleSubject(asked, threads, label == callsDependent)
		sub.system, sub.bytes = sys.Name(), sys.BytesPerEntry()
		sub.reference = i == 0 && isPando(sys.Name())
		c.subjects = append(c.subjects, sub)
	}
	return c
}

func (l *lookups[W]) singleSubject(sys single[W], threads int, dependent bool) *subject {
	var hits int
	return &subject{
		do: func(ops int) error {
			mask := W(noBits)
			hits = spread(threads, ops, func(lo, hi int) int {
				if dependent {
					return sys.Chain(l.q[lo:hi], l.vals[lo:hi], mask)
				}
				return sys.Each(l.q[lo:hi], l.vals[lo:hi])
			})
			return nil
		},
		check: func(ops int) error { return l.checkSingles(ops, hits) },
	}
}

// noBits is 0, in a variable so that the compiler does not know it.
var noBits uint64

func (l *lookups[W]) checkSingles(ops, hits int) error {
	for i, k := range l.q[:ops] {
		if l.vals[i] != valueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d", k, l.vals[i])
		}
	}
	l.wipe(ops)
	if hits != ops {
		return fmt.Errorf("%d hits reported where there are %d", hits, ops)
	}
	return nil
}
