package main

import (
	"fmt"
	"math"
	"runtime/debug"

	figures "github.com/pando-index/pando/bench/report"
)

var scanExp = &experiment{
	name:  "scan",
	about: "all entries in key order: a Tree, loaded and after random inserts, against Frozen and others",
	per:   "one entry",
	sizes: usualSizes,
	run:   runScan,
}

var treeMemory = &experiment{
	name:     "tree-memory",
	about:    "bytes an entry takes in a map that can be changed: loaded, after random and ascending inserts",
	caseName: "filled by",
	sizes:    usualSizes,
	extra:    []extraColumn{{colBeyond, percent}, {colDoubling, number}},
	run:      runTreeMemory,
}

// colDoubling is bytes an entry on the average while a map grew to twice its
// size. Uniform keys fill all nodes at about the same speed, so that they are
// split at about the same time: the memory of a map just before that and just
// after differs by a factor of two, and a power of two always hits the same side.
const colDoubling = "over a doubling"

func runScan(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		stores, err := buildStores(s, len(d.keys), append([]storeMaker{makeTreeStore(1)}, peerStores()...), g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		loaded, err := makeStore(makeTreeStore(1), func(st store) error { return loadSorted(st, d.keys, d.vals) })
		if err != nil {
			return err
		}
		defer loaded.Close()
		frozen, err := openFrozen("Pando Frozen", d.keys, d.vals)
		if err != nil {
			return err
		}
		defer frozen.Close()
		want := tally[uint64]{entries: len(d.keys)}
		want.keySum, want.sums = (&binarySearch[uint64]{d}).Scan()
		c := &contest{n: len(d.keys), threads: 1, ops: len(d.keys)}
		c.subjects = append(c.subjects,
			scans("Pando Frozen", frozenMap[uint64]{frozen}, want, true),
			scans(namePandoTree+", loaded", loaded.(scanner), want, false))
		for _, st := range stores {
			c.subjects = append(c.subjects, scans(st.Name()+", after inserts", st.(scanner), want, false))
		}
		return s.compete(c)
	})
}

func scans(name string, st scanner, want tally[uint64], reference bool) *subject {
	got := tally[uint64]{entries: want.entries}
	return &subject{
		system: name, reference: reference, whole: true,
		do:    func(int) error { got.keySum, got.sums = st.Scan(); return nil },
		check: func(int) error { return compareTally(got, want) },
	}
}

func runTreeMemory(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		mean := 0.0
		for _, way := range []struct {
			name string
			fill func(store) error
		}{
			{"loaded", func(st store) error { return loadSorted(st, d.keys, d.vals) }},
			{"ascending Set", func(st store) error { return st.Set(d.keys, d.vals) }},
			{"random Set", func(st store) (err error) { mean, err = g.watch(st); return err }},
			{"random SetBatch", func(st store) error { return g.growBatches(st.(*treeStore)) }},
		} {
			if err := treeMemoryRows(s, d, way.name, way.fill, &mean); err != nil {
				return err
			}
		}
		return nil
	})
}

// watch fills a store, and returns what an entry took on the average while it
// grew to twice its size, 0 for stores that do not know their size.
func (g growth) watch(st store) (mean float64, err error) {
	w, ok := st.(weighed)
	if !ok {
		return 0, g.grow(st)
	}
	const steps = 32
	n := len(g.keys)
	for i, lo := 0, 0; i <= steps; i++ { // equal steps of the logarithm
		hi := min(n, int(math.Round(float64(n)*math.Exp2(float64(i)/steps-1))))
		if err := st.Set(g.keys[lo:hi], g.vals[lo:hi]); err != nil {
			return 0, err
		}
		mean += float64(w.Bytes()) / float64(max(1, hi)) / (steps + 1)
		lo = hi
	}
	return mean, nil
}

// treeMemoryRows fills one map after the other, each dropped before the next.
// The number that fill leaves in mean goes into a column.
func treeMemoryRows(s *session, d *dataset[uint64], way string, fill func(store) error, mean *float64) error {
	makers := append([]storeMaker{makeTreeStore(allCores())}, peerStores()...)
	if way == "random SetBatch" {
		makers = makers[:1]
	}
	first := 0.0
	for _, m := range makers {
		if !s.fits(m.name, len(d.keys), m.peak) {
			continue
		}
		s.say("filling %s, %s ...", m.name, way)
		*mean = 0
		perEntry, st, err := bytesOf(m, fill)
		if err != nil {
			return err
		}
		n := st.Len()
		st.Close()
		debug.FreeOSMemory()
		if n != len(d.keys) {
			return fmt.Errorf("%s has %d entries of %d", m.name, n, len(d.keys))
		}
		r := &row{Row: figures.Row{System: m.name, Case: way, N: n, BytesPerEntry: perEntry, Reference: first == 0}}
		if first == 0 {
			first = perEntry
		}
		r.set(colBeyond, 100*(perEntry/pairBytes[uint64]()-1))
		if *mean > 0 {
			r.set(colDoubling, *mean)
		}
		r.RatioMedian, r.RatioBest = perEntry/first, perEntry/first
		s.rows = append(s.rows, r)
	}
	return nil
}
