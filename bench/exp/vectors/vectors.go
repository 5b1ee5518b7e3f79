package vectors

import (
	"fmt"
	"math"
	"runtime"
	"sort"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/duckdb"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/work"
)

var aggregateExp = &contest.Experiment{
	Name:     "aggregate",
	About:    "sum, least, greatest and mean of all values: against loops, and the speed of memory",
	Per:      "one entry",
	CaseName: "values",
	Sizes:    []int{1 * contest.Mega, 16 * contest.Mega, 64 * contest.Mega},
	Threads:  contest.OneAndAll(),
	Extra:    []contest.ExtraColumn{{Name: work.ColReads, Format: contest.Plain}, {Name: colOfPlain, Format: contest.Plain}},
	Run:      runAggregate,
}

var transformExp = &contest.Experiment{
	Name:    "transform",
	About:   "one added to all values of a Tree: Transform, SetBatch and Update against a slice",
	Per:     "one entry",
	Sizes:   contest.UsualSizes,
	Threads: contest.OneAndAll(),
	Run:     runTransform,
}

var histogramExp = &contest.Experiment{
	Name:     "histogram",
	About:    "values counted between bounds: Histogram against a loop with a binary search",
	Per:      "one entry",
	CaseName: "bounds",
	Sizes:    contest.UsualSizes,
	Threads:  contest.OneAndAll(),
	Run:      runHistogram,
}

var selectExp = &contest.Experiment{
	Name:     "select",
	About:    "entries picked by their value: Select against a loop over all",
	Per:      "one entry looked at",
	CaseName: "picked",
	Sizes:    contest.UsualSizes,
	Threads:  contest.OneAndAll(),
	Run:      runSelect,
}

// colOfPlain is that in parts of what plain Go reads at best in the same run from
// flat arrays, of 8 and of 16 bytes an entry.
const colOfPlain = "of a plain read"

// vectorIndexes is one set of entries, as vector operations find them.
type vectorIndexes[V pando.Number] struct {
	pairs, apart *pando.Frozen[uint64, V]
	tree         *pando.Tree[uint64, V]
}

func openVectors[V pando.Number](keys []uint64, vals []V, threads int) (ix vectorIndexes[V], err error) {
	on := []pando.Option{pando.On(pando.CPU), pando.Workers(threads)}
	if ix.pairs, err = pando.Freeze(keys, vals, append(on, pando.Layout(pando.Pairs))...); err != nil {
		return ix, err
	}
	if ix.apart, err = pando.Freeze(keys, vals, append(on, pando.Layout(pando.Apart))...); err != nil {
		return ix, err
	}
	ix.tree, err = pando.TreeOf(keys, vals, pando.On(pando.CPU), pando.Workers(threads))
	return ix, err
}

func (ix vectorIndexes[V]) close() {
	ix.pairs.Close()
	ix.apart.Close()
	ix.tree.Close()
}

func runAggregate(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		floats := make([]float64, len(d.Vals))
		for i, v := range d.Vals {
			floats[i] = float64(v>>11) / (1 << 53)
		}
		for _, threads := range s.Threads {
			if err := aggregateContest(s, "uint64", d.Keys, d.Vals, threads); err != nil {
				return err
			}
			if err := aggregateContest(s, "float64", d.Keys, floats, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func aggregateContest[V pando.Number](s *contest.Session, label string, keys []uint64, vals []V, threads int) error {
	ix, err := openVectors(keys, vals, threads)
	if err != nil {
		return err
	}
	defer ix.close()
	var sum V
	for _, v := range vals {
		sum += v
	}
	n := len(keys)
	c := &contest.Contest{N: n, Threads: threads, Label: label, Ops: n}
	var reads []float64 // bytes an entry
	row := func(name string, bytes float64, do func() (count int, sum V)) {
		var got V
		count := 0
		c.Subjects = append(c.Subjects, &contest.Subject{System: name, Reference: len(reads) == 0, Whole: true,
			Do:    func(int) error { count, got = do(); return nil },
			Check: func(int) error { return work.CheckSum(count, n, got, sum) },
		})
		reads = append(reads, bytes)
	}
	aggregate := func(of pando.Index[uint64, V]) func() (int, V) {
		return func() (int, V) {
			s := pando.Aggregate(of, 0, work.EveryKey)
			return s.Count, s.Sum
		}
	}
	row("Pando Frozen", 16, aggregate(ix.pairs))
	row("Pando Frozen, apart", 8, aggregate(ix.apart))
	row(ours.NameTree+", loaded", float64(ix.tree.Stats().LeafBytes)/float64(n), aggregate(ix.tree))
	flat, err := inside.NewBlock(8*n, 8*n) // on huge pages, as an index is
	if err != nil {
		return err
	}
	defer flat.Release()
	flatKeys, flatVals := inside.As[uint64](flat.Segment(0))[:n], inside.As[V](flat.Segment(1))[:n]
	copy(flatKeys, keys)
	copy(flatVals, vals)
	row(work.NamePlain, 8, func() (int, V) { return n, work.ReadAll(flatVals, threads) })
	row(namePlainPairs, 16, func() (int, V) {
		runtime.KeepAlive(work.ReadAll(flatKeys, threads)) // a sum nobody asks for
		return n, work.ReadAll(flatVals, threads)
	})
	if threads == 1 {
		row("slice, a loop", 8, func() (int, V) { return n, work.LoopSum(vals) })
		row("loop over All, Frozen", 16, func() (int, V) { return sumAll(ix.pairs) })
		row("loop over All, Tree", 0, func() (int, V) { return sumAll(ix.tree) })
	}
	if s.Wanted(nameDuckDB) {
		column, err := duckdb.Load(vals, threads)
		if err != nil {
			s.SkipOnce("%s: %v", nameDuckDB, err)
		} else {
			defer column.Close()
			row(nameDuckDB, 8, func() (int, V) {
				n, sum, err := column.Aggregate()
				if err != nil {
					s.Say("%s: %v", nameDuckDB, err)
				}
				return n, sum
			})
		}
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	setReads(s.Rows[len(s.Rows)-len(reads):], reads)
	return nil
}

const nameDuckDB = "DuckDB, a column in memory"

const namePlainPairs = "keys and values read by plain Go"

// setReads fills the columns of rows; row i reads reads[i] bytes an entry.
func setReads(rows []*contest.Row, reads []float64) {
	most := 0.0
	for i, r := range rows {
		if r.Best > 0 && reads[i] > 0 {
			r.Set(work.ColReads, reads[i]/r.Best)
			if r.System == work.NamePlain || r.System == namePlainPairs {
				most = max(most, reads[i]/r.Best)
			}
		}
	}
	for _, r := range rows {
		if gb, ok := r.Extra[work.ColReads]; ok && most > 0 {
			r.Set(colOfPlain, gb/most)
		}
	}
}

func runTransform(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, threads := range s.Threads {
			if err := transformContest(s, d, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func transformContest(s *contest.Session, d *data.Dataset[uint64], threads int) error {
	n := len(d.Keys)
	c := &contest.Contest{N: n, Threads: threads, Ops: n}
	base := work.LoopSum(d.Vals)
	row := func(name string, do func() error, sum func() uint64) {
		times := uint64(0)
		c.Subjects = append(c.Subjects, &contest.Subject{System: name, Reference: len(c.Subjects) == 0, Whole: true,
			Do: func(int) error { times++; return do() },
			Check: func(int) error {
				if got, want := sum(), base+times*uint64(n); got != want {
					return fmt.Errorf("the sum is %d after %d times, want %d", got, times, want)
				}
				return nil
			},
		})
	}
	for _, way := range []string{"Transform", "SetBatch", "Update"} {
		if way == "Update" && threads > 1 {
			continue
		}
		t, err := pando.TreeOf(d.Keys, d.Vals, pando.On(pando.CPU), pando.Workers(threads))
		if err != nil {
			return err
		}
		defer t.Close()
		row("Pando "+way, transformBy(way, t, d), func() uint64 { return pando.Aggregate(t, 0, work.EveryKey).Sum })
	}
	if threads == 1 {
		vals := append([]uint64(nil), d.Vals...)
		row("slice, a loop", func() error { addOne(vals); return nil }, func() uint64 { return work.LoopSum(vals) })
	}
	return s.Compete(c)
}

// transformBy returns what adds one to every value in a way.
func transformBy(way string, t *pando.Tree[uint64, uint64], d *data.Dataset[uint64]) func() error {
	vals := append([]uint64(nil), d.Vals...)
	switch way {
	case "SetBatch":
		return func() error { addOne(vals); return t.SetBatch(d.Keys, vals) }
	case "Update":
		return func() error {
			for _, k := range d.Keys {
				if err := t.Update(k, func(old uint64, _ bool) (uint64, bool) { return old + 1, true }); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return func() error { _, err := pando.Transform(t, 0, work.EveryKey, pando.Add[uint64](1)); return err }
}

func addOne(vals []uint64) {
	for i := range vals {
		vals[i]++
	}
}

func runHistogram(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, threads := range s.Threads {
			ix, err := openVectors(d.Keys, d.Vals, threads)
			if err != nil {
				return err
			}
			for _, n := range []int{1, 10, 24, 100, 1000} {
				if err := histogramContest(s, d, ix, n, threads); err != nil {
					return err
				}
			}
			ix.close()
		}
		return nil
	})
}

func histogramContest(s *contest.Session, d *data.Dataset[uint64], ix vectorIndexes[uint64], bins, threads int) error {
	n := len(d.Keys)
	bounds := make([]uint64, bins)
	for i := range bounds {
		bounds[i] = uint64(i+1) * (math.MaxUint64 / uint64(bins+1))
	}
	want := make([]int, bins+1)
	search := func(counts []int) {
		for _, v := range d.Vals {
			counts[sort.Search(bins, func(i int) bool { return bounds[i] > v })]++
		}
	}
	search(want)
	c := &contest.Contest{N: n, Threads: threads, Label: fmt.Sprint(bins), Ops: n}
	row := func(name string, do func(counts []int)) {
		counts := make([]int, bins+1)
		c.Subjects = append(c.Subjects, &contest.Subject{System: name, Reference: len(c.Subjects) == 0, Whole: true,
			Do: func(int) error { clear(counts); do(counts); return nil },
			Check: func(int) error {
				if fmt.Sprint(counts) != fmt.Sprint(want) {
					return fmt.Errorf("%v, want %v", counts, want)
				}
				return nil
			},
		})
	}
	row("Pando Frozen", func(counts []int) { pando.Histogram(ix.pairs, 0, work.EveryKey, bounds, counts) })
	row("Pando Frozen, apart", func(counts []int) { pando.Histogram(ix.apart, 0, work.EveryKey, bounds, counts) })
	row(ours.NameTree+", loaded", func(counts []int) { pando.Histogram(ix.tree, 0, work.EveryKey, bounds, counts) })
	if threads == 1 {
		row("slice, a search each", search)
	}
	return s.Compete(c)
}

func runSelect(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, threads := range s.Threads {
			ix, err := openVectors(d.Keys, d.Vals, threads)
			if err != nil {
				return err
			}
			for _, part := range []float64{0.001, 0.1, 0.5} {
				if err := selectContest(s, d, ix, part, threads); err != nil {
					return err
				}
			}
			ix.close()
		}
		return nil
	})
}

func selectContest(s *contest.Session, d *data.Dataset[uint64], ix vectorIndexes[uint64], part float64, threads int) error {
	n, most := len(d.Keys), uint64(part*math.MaxUint64)
	want, wantSum := 0, uint64(0)
	for i, v := range d.Vals {
		if v < most {
			want, wantSum = want+1, wantSum+d.Keys[i]
		}
	}
	c := &contest.Contest{N: n, Threads: threads, Label: fmt.Sprintf("%g %%", 100*part), Ops: n}
	row := func(name string, do func() (keys []uint64)) {
		var got []uint64
		c.Subjects = append(c.Subjects, &contest.Subject{System: name, Reference: len(c.Subjects) == 0, Whole: true,
			Do:    func(int) error { got = do(); return nil },
			Reset: func() { got = nil },
			Check: func(int) error {
				if len(got) != want || work.LoopSum(got) != wantSum {
					return fmt.Errorf("%d entries, want %d", len(got), want)
				}
				return nil
			},
		})
	}
	row("Pando Frozen", func() []uint64 { return pando.Select(ix.pairs, 0, work.EveryKey, pando.Below(most)).Keys })
	row("Pando Frozen, apart", func() []uint64 { return pando.Select(ix.apart, 0, work.EveryKey, pando.Below(most)).Keys })
	row(ours.NameTree+", loaded", func() []uint64 { return pando.Select(ix.tree, 0, work.EveryKey, pando.Below(most)).Keys })
	if threads == 1 {
		row("loop over All, Frozen", func() (keys []uint64) {
			var vals []uint64
			for k, v := range ix.pairs.All() {
				if v < most {
					keys, vals = append(keys, k), append(vals, v)
				}
			}
			return keys
		})
	}
	return s.Compete(c)
}

// sumAll adds values up as an iteration yields them.
func sumAll[V pando.Number](ix pando.Index[uint64, V]) (n int, sum V) {
	for _, v := range ix.All() {
		sum += v
		n++
	}
	return n, sum
}
