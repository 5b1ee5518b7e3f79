package values

import (
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

var memoryExp = &contest.Experiment{
	Name:     "values-memory",
	About:    "strings and slices of bytes, 32 bytes and 1 KiB each, one map at a time: resident memory, objects on the heap, what the garbage collector takes",
	CaseName: "values",
	Sizes:    []int{contest.Mega, 16 * contest.Mega},
	Extra: []contest.ExtraColumn{{Name: colResident, Format: contest.Number}, {Name: colObjects, Format: contest.Number},
		{Name: colShare, Format: contest.Plain}, {Name: colPause, Format: contest.Number}},
	Run: runMemory,
}

// The extra columns: resident memory and objects on the heap for an entry, the collector's
// share of processor time over a minute of work, a quarter of which are calls of Set, and its
// longest pause.
const (
	colResident = "resident B"
	colObjects  = "objects"
	colShare    = "% GC"
	colPause    = "pause µs"
)

func runMemory(s *contest.Session) error { return eachSize(s, weighAll) }

func weighAll(s *contest.Session, n, size int, label string) error {
	e := newEntries(n, size, s.Seed)
	for _, m := range makers() {
		if !roomFor(s, m.Name, n, size) {
			continue
		}
		if err := weigh(s, e, m, label); err != nil {
			return err
		}
	}
	s.EndSet()
	return nil
}

// weigh fills a store that is alone in the process, and has it work for a minute.
func weigh(s *contest.Session, e *entries, m peers.ByteStoreMaker, label string) error {
	s.Say("%s: memory and collector, %s ...", m.Name, label)
	memory, heap := resident(), objects()
	st, err := m.Make(len(e.keys), e.size)
	if err == nil {
		err = e.fill(st)
	}
	if err != nil {
		return err
	}
	defer st.Close()
	row := contest.NewRow(m.Name, label, len(e.keys))
	row.Reference = m.Name == ours.NameTree
	each := 1 / float64(len(e.keys))
	row.Set(colResident, float64(resident()-memory)*each)
	row.Set(colObjects, float64(objects()-heap)*each)
	before := readCollector()
	if err := mix(s, e, st); err != nil {
		return err
	}
	share, longest := readCollector().since(before)
	row.Set(colShare, 100*share)
	row.Set(colPause, float64(longest.Nanoseconds())/1000)
	s.Add(row)
	return nil
}

// mixSeconds is how long stores work for each second of a round.
const mixSeconds = 30

// mix reads and sets entries at random, three to one.
func mix(s *contest.Session, e *entries, st peers.ByteStore) error {
	q := newQuestions(e, len(e.vals))
	rng := data.NewRand(s.Seed, data.StreamQueries)
	for end := time.Now().Add(time.Duration(s.Seconds * mixSeconds * float64(time.Second))); time.Now().Before(end); {
		for range 3 {
			q.draw(rng)
			if err := q.check(len(q.keys), st.Get(q.keys, q.got)); err != nil {
				return err
			}
		}
		if err := e.each(func(int) int { return rng.IntN(len(e.keys)) }, len(e.vals), st.Set); err != nil {
			return err
		}
	}
	return nil
}
