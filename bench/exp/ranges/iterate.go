package ranges

import (
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

var rangeIter = &contest.Experiment{
	Name:     "range-iter",
	About:    "one range a call, iterated over: 1 to 1000 entries by Range, Scan and Cursor, numbers and URLs to uint64",
	Per:      "one range with all its entries read, keys and values",
	CaseName: "entries",
	Sizes:    []int{1 * contest.Mega},
	Queries:  256 * contest.Kilo,
	Extra:    []contest.ExtraColumn{{Name: contest.ColPerMatch, Format: contest.Number}, {Name: colAllocs, Format: contest.Number}},
	Run:      runRangeIter,
}

// colAllocs is the number of allocations of one operation.
const colAllocs = "allocs/op"

// iterated is the entries of an index, in key order. The value of entry i is
// data.ValueOf(i), so that every answer can be checked.
type iterated[K pando.Key] struct {
	label string
	keys  []K
	vals  []uint64
	size  func(K) uint64 // of what is read of a key
}

func runRangeIter(s *contest.Session) error {
	for _, n := range s.Sizes {
		d, err := data.NewDataset[uint64](s, n)
		if err != nil {
			return err
		}
		if err := iterateNumbers(s, newIterated("numbers", d.Keys, func(k uint64) uint64 { return k })); err != nil {
			return err
		}
		kind := data.TextKinds[0]
		if !s.Room(kind.Label, n, 2*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
			continue
		}
		words := data.NewTexts(s, kind, n)
		if err := iterateTexts(s, newIterated(kind.Label, words.Keys, func(k string) uint64 { return uint64(len(k)) })); err != nil {
			return err
		}
	}
	return nil
}

func newIterated[K pando.Key](label string, keys []K, size func(K) uint64) *iterated[K] {
	t := &iterated[K]{label: label, keys: keys, vals: make([]uint64, len(keys)), size: size}
	for i := range t.vals {
		t.vals[i] = data.ValueOf(uint64(i))
	}
	return t
}

// compete measures all ways over the same ranges.
func (t *iterated[K]) compete(s *contest.Session, readers []peers.Reader[K]) error {
	for _, entries := range []int{1, 10, 100, 1000} {
		entries = min(entries, len(t.keys))
		ops := max(1, s.Queries/entries)
		first := make([]int, ops)
		c := &contest.Contest{N: len(t.keys), Threads: 1, Label: fmt.Sprintf("%s, %d", t.label, entries), Ops: ops, Fresh: func(round int) {
			rng := data.RoundRand(s, round)
			for i := range first {
				first[i] = rng.IntN(len(t.keys) - entries + 1)
			}
		}}
		for i, r := range readers {
			if s.Wanted(r.Name) {
				c.Subjects = append(c.Subjects, t.subject(r, first, entries, i == 0))
			}
		}
		if err := s.Compete(c); err != nil {
			return err
		}
		for _, r := range s.Latest(c) {
			r.Set(colAllocs, r.AllocsPerOp)
		}
	}
	return nil
}

func (t *iterated[K]) subject(r peers.Reader[K], first []int, entries int, reference bool) *contest.Subject {
	var got peers.Ranged
	return &contest.Subject{
		System: r.Name, PerOp: entries, Reference: reference,
		Do: func(ops int) error {
			got = peers.Ranged{}
			for _, at := range first[:ops] {
				one := r.Read(t.keys[at], t.keys[at+entries-1])
				got.Entries, got.Vals, got.Keys64 = got.Entries+one.Entries, got.Vals+one.Vals, got.Keys64+one.Keys64
			}
			return nil
		},
		Check: func(ops int) error {
			var want peers.Ranged
			for _, at := range first[:ops] {
				for i := at; i < at+entries; i++ {
					want.Add(t.vals[i], t.size(t.keys[i]))
				}
			}
			if got != want {
				return fmt.Errorf("wrong answers: %+v; they should be %+v", got, want)
			}
			return nil
		},
	}
}
