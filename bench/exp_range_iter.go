package main

import (
	"fmt"

	"github.com/pando-index/pando"
)

var rangeIter = &experiment{
	name:     "range-iter",
	about:    "one range a call, iterated over: 1 to 1000 entries by Range, Scan and Cursor, numbers and URLs to uint64",
	per:      "one range with all its entries read, keys and values",
	caseName: "entries",
	sizes:    []int{1 * mega},
	queries:  256 * kilo,
	extra:    []extraColumn{{colPerMatch, number}, {colAllocs, number}},
	run:      runRangeIter,
}

// colAllocs is the number of allocations of one operation.
const colAllocs = "allocs/op"

// iterated is the entries of an index, in key order. The value of entry i is
// valueOf(i), so that every answer can be checked.
type iterated[K pando.Key] struct {
	label string
	keys  []K
	vals  []uint64
	size  func(K) uint64 // of what is read of a key
}

// reader is one way to read a range: it returns the number of its entries, the sum of
// their values, and that of their keys' sizes.
type reader[K pando.Key] struct {
	name string
	read func(lo, hi K) ranged
}

// ranged is what was read.
type ranged struct {
	entries      int
	vals, keys64 uint64
}

func (r *ranged) add(val, size uint64) {
	r.entries++
	r.vals += val
	r.keys64 += size
}

func runRangeIter(s *session) error {
	for _, n := range s.sizes {
		d, err := newDataset[uint64](s, n)
		if err != nil {
			return err
		}
		if err := iterateNumbers(s, newIterated("numbers", d.keys, func(k uint64) uint64 { return k })); err != nil {
			return err
		}
		kind := textKinds[0]
		if !s.room(kind.label, n, 2*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
			continue
		}
		words := newTexts(s, kind, n)
		if err := iterateTexts(s, newIterated(kind.label, words.keys, func(k string) uint64 { return uint64(len(k)) })); err != nil {
			return err
		}
	}
	return nil
}

func newIterated[K pando.Key](label string, keys []K, size func(K) uint64) *iterated[K] {
	t := &iterated[K]{label: label, keys: keys, vals: make([]uint64, len(keys)), size: size}
	for i := range t.vals {
		t.vals[i] = valueOf(uint64(i))
	}
	return t
}

// compete measures all ways over the same ranges.
func (t *iterated[K]) compete(s *session, readers []reader[K]) error {
	for _, entries := range []int{1, 10, 100, 1000} {
		entries = min(entries, len(t.keys))
		ops := max(1, s.queries/entries)
		first := make([]int, ops)
		c := &contest{n: len(t.keys), threads: 1, label: fmt.Sprintf("%s, %d", t.label, entries), ops: ops, fresh: func(round int) {
			rng := s.roundRand(round)
			for i := range first {
				first[i] = rng.IntN(len(t.keys) - entries + 1)
			}
		}}
		for i, r := range readers {
			if s.wanted(r.name) {
				c.subjects = append(c.subjects, t.subject(r, first, entries, i == 0))
			}
		}
		if err := s.compete(c); err != nil {
			return err
		}
		for _, r := range s.latest(c) {
			r.set(colAllocs, r.AllocsPerOp)
		}
	}
	return nil
}

func (t *iterated[K]) subject(r reader[K], first []int, entries int, reference bool) *subject {
	var got ranged
	return &subject{
		system: r.name, perOp: entries, reference: reference,
		do: func(ops int) error {
			got = ranged{}
			for _, at := range first[:ops] {
				one := r.read(t.keys[at], t.keys[at+entries-1])
				got.entries, got.vals, got.keys64 = got.entries+one.entries, got.vals+one.vals, got.keys64+one.keys64
			}
			return nil
		},
		check: func(ops int) error {
			var want ranged
			for _, at := range first[:ops] {
				for i := at; i < at+entries; i++ {
					want.add(t.vals[i], t.size(t.keys[i]))
				}
			}
			if got != want {
				return fmt.Errorf("wrong answers: %+v; they should be %+v", got, want)
			}
			return nil
		},
	}
}
