package tree

import (
	"fmt"
	"math"
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var scanExp = &contest.Experiment{
	Name:  "scan",
	About: "all entries in key order: a Tree, loaded and after random inserts, against Frozen and others",
	Per:   "one entry",
	Sizes: contest.UsualSizes,
	Run:   runScan,
}

var treeMemory = &contest.Experiment{
	Name:     "tree-memory",
	About:    "bytes an entry takes in a map that can be changed: loaded, after random and ascending inserts",
	CaseName: "filled by",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: contest.ColBeyond, Format: contest.Percent}, {Name: colDoubling, Format: contest.Number}},
	Run:      runTreeMemory,
}

// colDoubling is bytes an entry on the average while a map grew to twice its
// size. Uniform keys fill all nodes at about the same speed, so that they are
// split at about the same time: the memory of a map just before that and just
// after differs by a factor of two, and a power of two always hits the same side.
const colDoubling = "over a doubling"

func runScan(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		stores, err := peers.BuildStores(s, len(d.Keys), append([]peers.StoreMaker{ours.MakeTreeStore(1)}, peers.Stores()...), g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		loaded, err := peers.MakeStore(ours.MakeTreeStore(1), func(st peers.Store) error { return peers.LoadSorted(st, d.Keys, d.Vals) })
		if err != nil {
			return err
		}
		defer loaded.Close()
		frozen, err := ours.OpenFrozen("Pando Frozen", d.Keys, d.Vals)
		if err != nil {
			return err
		}
		defer frozen.Close()
		want := work.Tally[uint64]{Entries: len(d.Keys)}
		want.KeySum, want.Sums = peers.NewBinarySearch(d).Scan()
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Ops: len(d.Keys)}
		c.Subjects = append(c.Subjects,
			scans("Pando Frozen", ours.FrozenMap[uint64]{Frozen: frozen}, want, true),
			scans(ours.NameTree+", loaded", loaded.(peers.Scanner), want, false))
		for _, st := range stores {
			c.Subjects = append(c.Subjects, scans(st.Name()+", after inserts", st.(peers.Scanner), want, false))
		}
		return s.Compete(c)
	})
}

func scans(name string, st peers.Scanner, want work.Tally[uint64], reference bool) *contest.Subject {
	got := work.Tally[uint64]{Entries: want.Entries}
	return &contest.Subject{
		System: name, Reference: reference, Whole: true,
		Do:    func(int) error { got.KeySum, got.Sums = st.Scan(); return nil },
		Check: func(int) error { return work.CompareTally(got, want) },
	}
}

func runTreeMemory(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		mean := 0.0
		for _, way := range []struct {
			name string
			fill func(peers.Store) error
		}{
			{"loaded", func(st peers.Store) error { return peers.LoadSorted(st, d.Keys, d.Vals) }},
			{"ascending Set", func(st peers.Store) error { return st.Set(d.Keys, d.Vals) }},
			{"random Set", func(st peers.Store) (err error) { mean, err = watch(g, st); return err }},
			{"random SetBatch", func(st peers.Store) error { return g.GrowBatches(st.(*ours.TreeStore)) }},
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
func watch(g work.Growth, st peers.Store) (mean float64, err error) {
	w, ok := st.(peers.Weighed)
	if !ok {
		return 0, g.Grow(st)
	}
	const steps = 32
	n := len(g.Keys)
	for i, lo := 0, 0; i <= steps; i++ { // equal steps of the logarithm
		hi := min(n, int(math.Round(float64(n)*math.Exp2(float64(i)/steps-1))))
		if err := st.Set(g.Keys[lo:hi], g.Vals[lo:hi]); err != nil {
			return 0, err
		}
		mean += float64(w.Bytes()) / float64(max(1, hi)) / (steps + 1)
		lo = hi
	}
	return mean, nil
}

// treeMemoryRows fills one map after the other, each dropped before the next.
// The number that fill leaves in mean goes into a column.
func treeMemoryRows(s *contest.Session, d *data.Dataset[uint64], way string, fill func(peers.Store) error, mean *float64) error {
	makers := append([]peers.StoreMaker{ours.MakeTreeStore(contest.AllCores())}, peers.Stores()...)
	if way == "random SetBatch" {
		makers = makers[:1]
	}
	first := 0.0
	for _, m := range makers {
		if !s.Fits(m.Name, len(d.Keys), m.Peak) {
			continue
		}
		s.Say("filling %s, %s ...", m.Name, way)
		*mean = 0
		perEntry, st, err := peers.BytesOf(m, fill)
		if err != nil {
			return err
		}
		n := st.Len()
		st.Close()
		debug.FreeOSMemory()
		if n != len(d.Keys) {
			return fmt.Errorf("%s has %d entries of %d", m.Name, n, len(d.Keys))
		}
		r := contest.NewRow(m.Name, way, n)
		r.BytesPerEntry, r.Reference = perEntry, first == 0
		if first == 0 {
			first = perEntry
		}
		r.Set(contest.ColBeyond, 100*(perEntry/data.PairBytes[uint64]()-1))
		if *mean > 0 {
			r.Set(colDoubling, *mean)
		}
		r.RatioMedian, r.RatioBest = perEntry/first, perEntry/first
		s.Add(r)
	}
	return nil
}
