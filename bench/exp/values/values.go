package values

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

var valuesExp = &contest.Experiment{
	Name:     "values",
	About:    "strings and slices of bytes, 32 bytes and 1 KiB each: Get, GetBatch, Set, SetBatch, readers beside a writer",
	Per:      "one key",
	CaseName: "values, work",
	Sizes:    []int{contest.Mega, 16 * contest.Mega},
	Run:      runValues,
}

// sizes are the bytes of values, and how many times fewer entries there are.
var sizes = []struct {
	label string
	bytes int
	fewer int
}{{"32 B", 32, 1}, {"1 KiB", 1 << 10, 16}}

func runValues(s *contest.Session) error {
	return eachSize(s, compare)
}

// eachSize calls f with the number of entries, the bytes of a value, and what they are called.
func eachSize(s *contest.Session, f func(s *contest.Session, n, size int, label string) error) error {
	for _, n := range s.Sizes {
		for _, size := range sizes {
			if err := f(s, max(n/size.fewer, 1), size.bytes, size.label); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare measures all stores that fit into memory together.
func compare(s *contest.Session, n, size int, label string) error {
	e := newEntries(n, size, s.Seed)
	var stores []peers.ByteStore
	defer func() {
		for _, st := range stores {
			st.Close()
		}
	}()
	for _, m := range makers() {
		if !roomFor(s, m.Name, n, size) {
			continue
		}
		st, err := m.Make(n, size)
		if err == nil {
			err = e.fill(st)
		}
		if err != nil {
			return err
		}
		stores = append(stores, st)
	}
	if err := gets(s, e, stores, label); err != nil {
		return err
	}
	if err := sets(s, e, stores, label); err != nil {
		return err
	}
	for _, st := range stores {
		if tree, ok := st.(*ours.TreeBytes); ok {
			return beside(s, e, tree, label)
		}
	}
	return nil
}

func gets(s *contest.Session, e *entries, stores []peers.ByteStore, label string) error {
	q := newQuestions(e, s.Queries)
	c := &contest.Contest{N: len(e.keys), Threads: 1, Label: label + ", Get", Ops: s.Queries, Fresh: func(round int) { q.draw(data.RoundRand(s, round)) }}
	add := func(name string, get func(q []string, got []uint64) int) {
		hits := 0
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: name, Reference: len(c.Subjects) == 0,
			Do:    func(ops int) error { hits = get(q.keys[:ops], q.got); return nil },
			Check: func(ops int) error { return q.check(ops, hits) },
			Reset: runtime.GC, // some allocate each value
		})
	}
	for _, st := range stores {
		if t, ok := st.(*ours.TreeBytes); ok {
			add(ours.NameTree+", GetBatch", t.GetBatch)
			add(ours.NameTree+", Get", t.GetEach)
			add(ours.NameTree+", GetAppend", t.Get)
			continue
		}
		add(st.Name(), st.Get)
	}
	return s.Compete(c)
}

func sets(s *contest.Session, e *entries, stores []peers.ByteStore, label string) error {
	q := newQuestions(e, s.Queries)
	c := &contest.Contest{N: len(e.keys), Threads: 1, Label: label + ", Set", Ops: s.Queries, Fresh: func(round int) { q.draw(data.RoundRand(s, round)) }}
	add := func(name string, st peers.ByteStore, set func(keys []string, vals [][]byte) error) {
		var took time.Duration
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: name, Reference: len(c.Subjects) == 0,
			Do: func(ops int) error {
				took = 0
				return e.each(func(i int) int { return q.rows[i] }, ops, func(keys []string, vals [][]byte) error {
					start := time.Now()
					err := set(keys, vals)
					took += time.Since(start)
					return err
				})
			},
			Clock: func() time.Duration { return took },
			Check: func(ops int) error { return q.check(ops, st.Get(q.keys[:ops], q.got)) },
			Reset: runtime.GC,
		})
	}
	for _, st := range stores {
		if t, ok := st.(*ours.TreeBytes); ok {
			add(ours.NameTree+", SetBatch", st, t.SetBatch)
			add(ours.NameTree+", Set", st, st.Set)
			continue
		}
		add(st.Name(), st, st.Set)
	}
	return s.Compete(c)
}

// beside measures readers of a tree: alone, beside a goroutine that sets values at random, and
// beside that and snapshots.
func beside(s *contest.Session, e *entries, t *ours.TreeBytes, label string) error {
	readers := max(1, runtime.GOMAXPROCS(0)-1)
	q := newQuestions(e, s.Queries)
	c := &contest.Contest{N: len(e.keys), Threads: readers, Label: label + ", GetBatch beside", Ops: s.Queries, Fresh: func(round int) { q.draw(data.RoundRand(s, round)) }}
	for i, who := range []string{"nobody", "a writer", "a writer and snapshots"} {
		var took time.Duration
		hits := 0
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: ours.NameTree + " beside " + who, Reference: i == 0,
			Do: func(ops int) error {
				stop := disturb(e, t, i > 0, i > 1)
				start := time.Now()
				hits = readBeside(t, q, ops, readers)
				took = time.Since(start)
				return stop()
			},
			Clock: func() time.Duration { return took },
			Check: func(ops int) error { return q.check(ops, hits) },
			Reset: runtime.GC,
		})
	}
	return s.Compete(c)
}

// readBeside has readers ask the first ops questions.
func readBeside(t *ours.TreeBytes, q *questions, ops, readers int) int {
	var wg sync.WaitGroup
	var hits atomic.Int64
	for r := range readers {
		wg.Go(func() {
			var room ours.BatchRoom
			lo, hi := r*ops/readers, (r+1)*ops/readers
			hits.Add(int64(room.GetBatch(t.Tree, q.keys[lo:hi], q.got[lo:hi])))
		})
	}
	wg.Wait()
	return int(hits.Load())
}

// disturb changes a tree until the function that it returns is called.
func disturb(e *entries, t *ours.TreeBytes, write, snapshots bool) (stop func() error) {
	var over atomic.Bool
	var wg sync.WaitGroup
	var err error
	if write {
		own := newEntries(setAtOnce, e.size, 0)
		own.keys = e.keys
		rng := data.NewRand(1, data.StreamShuffle)
		wg.Go(func() {
			for !over.Load() && err == nil {
				err = own.each(func(int) int { return rng.IntN(len(e.keys)) }, setAtOnce/16, t.Set)
			}
		})
	}
	if snapshots {
		wg.Go(func() {
			for !over.Load() {
				snap := t.Tree.Snapshot()
				time.Sleep(10 * time.Millisecond)
				snap.Close()
			}
		})
	}
	return func() error {
		over.Store(true)
		wg.Wait()
		return err
	}
}
