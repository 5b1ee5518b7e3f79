package point

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var singleGet = &contest.Experiment{
	Name:     "single-get",
	About:    "Get, one key a call, uint64 to uint64, random hits",
	Figure:   "fig. 20 at length 1, of the " + contest.Paper16,
	Per:      "one call of Get",
	CaseName: "calls",
	Sizes:    contest.UsualSizes,
	Run:      runSingle,
}

// The two cases of single-get.
const (
	callsDependent   = "each waits for the last"
	callsIndependent = "independent"
)

func runSingle(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		systems, err := peers.BuildAll(s, d, append(ours.Layouts[uint64](), peers.Makers[uint64]()...))
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		l := work.NewLookups(s, d)
		for _, threads := range s.Threads {
			for _, label := range []string{callsDependent, callsIndependent} {
				if err := s.Compete(singles(l, systems, threads, label)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// singles makes the contest. Pando's Get runs on the caller's goroutine, so it
// is spread over threads like the peers.
func singles[W data.Word](l *work.Lookups[W], systems []peers.System[W], threads int, label string) *contest.Contest {
	c := &contest.Contest{N: len(l.D.Keys), Threads: threads, Label: label, Ops: len(l.Q)}
	c.Fresh = func(round int) { l.Fresh(round, l.D.Hits, work.AllHits) }
	for i, sys := range systems {
		asked, ok := sys.(peers.Single[W])
		if !ok {
			continue
		}
		sub := singleSubject(l, asked, threads, label == callsDependent)
		sub.System, sub.Bytes = sys.Name(), sys.BytesPerEntry()
		sub.Reference = i == 0 && contest.IsPando(sys.Name())
		c.Subjects = append(c.Subjects, sub)
	}
	return c
}

func singleSubject[W data.Word](l *work.Lookups[W], sys peers.Single[W], threads int, dependent bool) *contest.Subject {
	var hits int
	return &contest.Subject{
		Do: func(ops int) error {
			mask := W(noBits)
			hits = contest.Spread(threads, ops, func(lo, hi int) int {
				if dependent {
					return sys.Chain(l.Q[lo:hi], l.Vals[lo:hi], mask)
				}
				return sys.Each(l.Q[lo:hi], l.Vals[lo:hi])
			})
			return nil
		},
		Check: func(ops int) error { return checkSingles(l, ops, hits) },
	}
}

// noBits is 0, in a variable so that the compiler does not know it.
var noBits uint64

func checkSingles[W data.Word](l *work.Lookups[W], ops, hits int) error {
	for i, k := range l.Q[:ops] {
		if l.Vals[i] != data.ValueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d", k, l.Vals[i])
		}
	}
	l.Wipe(ops)
	if hits != ops {
		return fmt.Errorf("%d hits reported where there are %d", hits, ops)
	}
	return nil
}
