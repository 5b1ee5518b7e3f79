package main

import (
	"fmt"
	"math"
	"runtime"
	"sort"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/duckdb"
	"github.com/pando-index/pando/internal/arena"
)

var aggregateExp = &experiment{
	name:     "aggregate",
	about:    "sum, least, greatest and mean of all values: against loops, and the speed of memory",
	per:      "one entry",
	caseName: "values",
	sizes:    []int{1 * mega, 16 * mega, 64 * mega},
	threads:  oneAndAll(),
	extra:    []extraColumn{{colReads, plain}, {colOfPlain, plain}},
	run:      runAggregate,
}

var transformExp = &experiment{
	name:    "transform",
	about:   "one added to all values of a Tree: Transform, SetBatch and Update against a slice",
	per:     "one entry",
	sizes:   usualSizes,
	threads: oneAndAll(),
	run:     runTransform,
}

var histogramExp = &experiment{
	name:     "histogram",
	about:    "values counted between bounds: Histogram against a loop with a binary search",
	per:      "one entry",
	caseName: "bounds",
	sizes:    usualSizes,
	threads:  oneAndAll(),
	run:      runHistogram,
}

var selectExp = &experiment{
	name:     "select",
	about:    "entries picked by their value: Select against a loop over all",
	per:      "one entry looked at",
	caseName: "picked",
	sizes:    usualSizes,
	threads:  oneAndAll(),
	run:      runSelect,
}

// colReads is gigabytes of memory that a row reads in a second: of a column of
// values 8 bytes an entry, of pairs 16, of a Tree what its leaves take.
const colReads = "reads GB/s"

// colOfPlain is that in parts of what plain Go reads at best in the same run from
// flat arrays, of 8 and of 16 bytes an entry.
const colOfPlain = "of a plain read"

// everyKey is the range of all keys.
const everyKey = math.MaxUint64

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

func runAggregate(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		floats := make([]float64, len(d.vals))
		for i, v := range d.vals {
			floats[i] = float64(v>>11) / (1 << 53)
		}
		for _, threads := range s.threads {
			if err := aggregateContest(s, "uint64", d.keys, d.vals, threads); err != nil {
				return err
			}
			if err := aggregateContest(s, "float64", d.keys, floats, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func aggregateContest[V pando.Number](s *session, label string, keys []uint64, vals []V, threads int) error {
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
	c := &contest{n: n, threads: threads, label: label, ops: n}
	var reads []float64 // bytes an entry
	row := func(name string, bytes float64, do func() (count int, sum V)) {
		var got V
		count := 0
		c.subjects = append(c.subjects, &subject{system: name, reference: len(reads) == 0, whole: true,
			do:    func(int) error { count, got = do(); return nil },
			check: func(int) error { return checkSum(count, n, got, sum) },
		})
		reads = append(reads, bytes)
	}
	aggregate := func(of pando.Index[uint64, V]) func() (int, V) {
		return func() (int, V) {
			s := pando.Aggregate(of, 0, everyKey)
			return s.Count, s.Sum
		}
	}
	row("Pando Frozen", 16, aggregate(ix.pairs))
	row("Pando Frozen, apart", 8, aggregate(ix.apart))
	row(namePandoTree+", loaded", float64(ix.tree.Stats().LeafBytes)/float64(n), aggregate(ix.tree))
	flat, err := arena.New([]int{8 * n, 8 * n}, 0, arena.HugeAll, 0) // on huge pages, as an index is
	if err != nil {
		return err
	}
	defer flat.Release()
	flatKeys, flatVals := arena.As[uint64](flat.Segment(0))[:n], arena.As[V](flat.Segment(1))[:n]
	copy(flatKeys, keys)
	copy(flatVals, vals)
	row(namePlain, 8, func() (int, V) { return n, readAll(flatVals, threads) })
	row(namePlainPairs, 16, func() (int, V) {
		runtime.KeepAlive(readAll(flatKeys, threads)) // a sum nobody asks for
		return n, readAll(flatVals, threads)
	})
	if threads == 1 {
		row("slice, a loop", 8, func() (int, V) { return n, loopSum(vals) })
		row("loop over All, Frozen", 16, func() (int, V) { return sumAll(ix.pairs) })
		row("loop over All, Tree", 0, func() (int, V) { return sumAll(ix.tree) })
	}
	if s.wanted(nameDuckDB) {
		column, err := duckdb.Load(vals, threads)
		if err != nil {
			s.skipOnce("%s: %v", nameDuckDB, err)
		} else {
			defer column.Close()
			row(nameDuckDB, 8, func() (int, V) {
				n, sum, err := column.Aggregate()
				if err != nil {
					s.say("%s: %v", nameDuckDB, err)
				}
				return n, sum
			})
		}
	}
	if err := s.compete(c); err != nil {
		return err
	}
	setReads(s.rows[len(s.rows)-len(reads):], reads)
	return nil
}

const (
	nameDuckDB     = "DuckDB, a column in memory"
	namePlain      = "values read by plain Go"
	namePlainPairs = "keys and values read by plain Go"
)

// setReads fills the columns of rows; row i reads reads[i] bytes an entry.
func setReads(rows []*row, reads []float64) {
	most := 0.0
	for i, r := range rows {
		if r.Best > 0 && reads[i] > 0 {
			r.set(colReads, reads[i]/r.Best)
			if r.System == namePlain || r.System == namePlainPairs {
				most = max(most, reads[i]/r.Best)
			}
		}
	}
	for _, r := range rows {
		if gb, ok := r.Extra[colReads]; ok && most > 0 {
			r.set(colOfPlain, gb/most)
		}
	}
}

// checkSum compares a sum with that of a plain loop: floats, which are added in
// another order, within a few of their last bits.
func checkSum[V pando.Number](count, n int, got, want V) error {
	off := math.Abs(float64(got) - float64(want))
	if integer := V(1)/2 == 0; count != n || integer && got != want || off > 1e-9*math.Abs(float64(want)) {
		return fmt.Errorf("%d values with the sum %v, want %d with %v", count, got, n, want)
	}
	return nil
}

func loopSum[V pando.Number](vals []V) (sum V) {
	for _, v := range vals {
		sum += v
	}
	return sum
}

func sumAll[V pando.Number](ix pando.Index[uint64, V]) (n int, sum V) {
	for _, v := range ix.All() {
		sum += v
		n++
	}
	return n, sum
}

// readAll adds values up in eight sums on several threads, so that no addition
// waits for another: about as fast as plain Go reads memory.
func readAll[V pando.Number](vals []V, threads int) (sum V) {
	parts := make([]V, threads)
	done := make(chan bool, threads)
	for t := range threads {
		go func() {
			parts[t] = readPart(vals[t*len(vals)/threads : (t+1)*len(vals)/threads])
			done <- true
		}()
	}
	for range threads {
		<-done
	}
	return loopSum(parts)
}

func readPart[V pando.Number](vals []V) V {
	var a, b, c, d, e, f, g, h V
	for ; len(vals) >= 8; vals = vals[8:] {
		v := vals[:8]
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
		e, f, g, h = e+v[4], f+v[5], g+v[6], h+v[7]
	}
	return ((a + b) + (c + d)) + ((e + f) + (g + h)) + loopSum(vals)
}

func runTransform(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		for _, threads := range s.threads {
			if err := transformContest(s, d, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func transformContest(s *session, d *dataset[uint64], threads int) error {
	n := len(d.keys)
	c := &contest{n: n, threads: threads, ops: n}
	base := loopSum(d.vals)
	row := func(name string, do func() error, sum func() uint64) {
		times := uint64(0)
		c.subjects = append(c.subjects, &subject{system: name, reference: len(c.subjects) == 0, whole: true,
			do: func(int) error { times++; return do() },
			check: func(int) error {
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
		t, err := pando.TreeOf(d.keys, d.vals, pando.On(pando.CPU), pando.Workers(threads))
		if err != nil {
			return err
		}
		defer t.Close()
		row("Pando "+way, transformBy(way, t, d), func() uint64 { return pando.Aggregate(t, 0, everyKey).Sum })
	}
	if threads == 1 {
		vals := append([]uint64(nil), d.vals...)
		row("slice, a loop", func() error { addOne(vals); return nil }, func() uint64 { return loopSum(vals) })
	}
	return s.compete(c)
}

// transformBy returns what adds one to every value in a way.
func transformBy(way string, t *pando.Tree[uint64, uint64], d *dataset[uint64]) func() error {
	vals := append([]uint64(nil), d.vals...)
	switch way {
	case "SetBatch":
		return func() error { addOne(vals); return t.SetBatch(d.keys, vals) }
	case "Update":
		return func() error {
			for _, k := range d.keys {
				if err := t.Update(k, func(old uint64, _ bool) (uint64, bool) { return old + 1, true }); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return func() error { _, err := pando.Transform(t, 0, everyKey, pando.Add[uint64](1)); return err }
}

func addOne(vals []uint64) {
	for i := range vals {
		vals[i]++
	}
}

func runHistogram(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		for _, threads := range s.threads {
			ix, err := openVectors(d.keys, d.vals, threads)
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

func histogramContest(s *session, d *dataset[uint64], ix vectorIndexes[uint64], bins, threads int) error {
	n := len(d.keys)
	bounds := make([]uint64, bins)
	for i := range bounds {
		bounds[i] = uint64(i+1) * (math.MaxUint64 / uint64(bins+1))
	}
	want := make([]int, bins+1)
	search := func(counts []int) {
		for _, v := range d.vals {
			counts[sort.Search(bins, func(i int) bool { return bounds[i] > v })]++
		}
	}
	search(want)
	c := &contest{n: n, threads: threads, label: fmt.Sprint(bins), ops: n}
	row := func(name string, do func(counts []int)) {
		counts := make([]int, bins+1)
		c.subjects = append(c.subjects, &subject{system: name, reference: len(c.subjects) == 0, whole: true,
			do: func(int) error { clear(counts); do(counts); return nil },
			check: func(int) error {
				if fmt.Sprint(counts) != fmt.Sprint(want) {
					return fmt.Errorf("%v, want %v", counts, want)
				}
				return nil
			},
		})
	}
	row("Pando Frozen", func(counts []int) { pando.Histogram(ix.pairs, 0, everyKey, bounds, counts) })
	row("Pando Frozen, apart", func(counts []int) { pando.Histogram(ix.apart, 0, everyKey, bounds, counts) })
	row(namePandoTree+", loaded", func(counts []int) { pando.Histogram(ix.tree, 0, everyKey, bounds, counts) })
	if threads == 1 {
		row("slice, a search each", search)
	}
	return s.compete(c)
}

func runSelect(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		for _, threads := range s.threads {
			ix, err := openVectors(d.keys, d.vals, threads)
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

func selectContest(s *session, d *dataset[uint64], ix vectorIndexes[uint64], part float64, threads int) error {
	n, most := len(d.keys), uint64(part*math.MaxUint64)
	want, wantSum := 0, uint64(0)
	for i, v := range d.vals {
		if v < most {
			want, wantSum = want+1, wantSum+d.keys[i]
		}
	}
	c := &contest{n: n, threads: threads, label: fmt.Sprintf("%g %%", 100*part), ops: n}
	row := func(name string, do func() (keys []uint64)) {
		var got []uint64
		c.subjects = append(c.subjects, &subject{system: name, reference: len(c.subjects) == 0, whole: true,
			do:    func(int) error { got = do(); return nil },
			reset: func() { got = nil },
			check: func(int) error {
				if len(got) != want || loopSum(got) != wantSum {
					return fmt.Errorf("%d entries, want %d", len(got), want)
				}
				return nil
			},
		})
	}
	row("Pando Frozen", func() []uint64 { return pando.Select(ix.pairs, 0, everyKey, pando.Below(most)).Keys })
	row("Pando Frozen, apart", func() []uint64 { return pando.Select(ix.apart, 0, everyKey, pando.Below(most)).Keys })
	row(namePandoTree+", loaded", func() []uint64 { return pando.Select(ix.tree, 0, everyKey, pando.Below(most)).Keys })
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
	return s.compete(c)
}
