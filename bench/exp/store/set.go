package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

const (
	colP50    = "p50 µs"
	colP99    = "p99 µs"
	colRate   = "a second"
	colOfSync = "p50 / bare sync"

	nameSync = "limit: write 4 KiB, fdatasync"
)

var storeSet = &contest.Experiment{
	Name:    "store-set",
	About:   "Set of one key, on disk when it returns, by 1 and by 64 goroutines; --threads are the goroutines",
	Per:     "one key set, durably",
	Sizes:   []int{contest.Mega},
	Queries: 2 * contest.Kilo,
	Threads: []int{1, 64},
	Extra: []contest.ExtraColumn{{Name: colP50, Format: contest.Number}, {Name: colP99, Format: contest.Number},
		{Name: colRate, Format: contest.Number}, {Name: colOfSync, Format: contest.Ratio}},
	Run: runSet,
}

// waits are the times of single calls, one slice for each time that the work was done.
type waits [][]time.Duration

// last returns the times of the last rounds, in order: those before were to warm up.
func (w waits) last(rounds int) []time.Duration {
	all := slices.Concat(w[max(0, len(w)-rounds):]...)
	slices.Sort(all)
	return all
}

// at returns a quantile in microseconds.
func at(sorted []time.Duration, part float64) float64 {
	return float64(sorted[int(part*float64(len(sorted)-1))].Nanoseconds()) / 1000
}

func runSet(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		p, err := newPlace()
		if err != nil {
			return err
		}
		defer p.close()
		own, err := p.open(s, ours.MakeDurable(ours.NameStore), d)
		if err != nil {
			return err
		}
		others, err := p.openPeers(s, d)
		if err != nil {
			return err
		}
		limit, err := p.newBare(64 << 20)
		if err != nil {
			return err
		}
		for _, writers := range s.Threads {
			if err := setContest(s, d, writers, append([]peers.Durable{own}, others...), limit); err != nil {
				return err
			}
		}
		return nil
	})
}

// setContest measures one number of writers. Several do more, so that each has some to do.
func setContest(s *contest.Session, d *data.Dataset[uint64], writers int, stores []peers.Durable, limit *bare) error {
	pairs := work.NewPairs(s, s.Queries*min(writers, 16))
	c := &contest.Contest{N: len(d.Keys), Threads: writers, Ops: len(pairs.Keys), First: 4 * writers, Fresh: pairs.Fresh}
	times := make([]waits, len(stores)+1)
	for i, st := range stores {
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: st.Name(), Reference: i == 0,
			Do: func(ops int) error {
				return each(writers, ops, &times[i], func(j int) error { return st.Set(pairs.Keys[j], pairs.Vals[j]) })
			},
			Check: func(ops int) error { return check(st, pairs.Keys[:ops], pairs.Vals[:ops]) },
		})
	}
	if writers == 1 {
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: nameSync,
			Do: func(ops int) error {
				return each(1, ops, &times[len(stores)], func(int) error { return limit.write(4 << 10) })
			},
			Check: func(int) error { return nil },
		})
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	rows := s.Latest(c)
	for i, r := range rows {
		sorted := times[i].last(s.Rounds)
		r.Set(colP50, at(sorted, 0.5))
		r.Set(colP99, at(sorted, 0.99))
		r.Set(colRate, 1e9/r.Median)
	}
	if writers == 1 {
		for _, r := range rows {
			r.Set(colOfSync, r.Extra[colP50]/rows[len(rows)-1].Extra[colP50])
		}
	}
	return nil
}

// each calls do for each of ops operations, from several goroutines, and adds how long the
// calls took.
func each(writers, ops int, to *waits, do func(i int) error) error {
	took := make([]time.Duration, ops)
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < ops && failed.Load() == nil; i += writers {
				begun := time.Now()
				if err := do(i); err != nil {
					failed.Store(&err)
				}
				took[i] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	*to = append(*to, took)
	return nil
}
