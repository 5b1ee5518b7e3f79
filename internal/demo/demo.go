// Package demo times an index of generated pairs beside what Go has, and compares all
// answers. The commands demo and pando show what it finds.
package demo

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/pando-index/pando"
)

// data is the data of the demonstration and its queries.
type data struct {
	keys, vals   []uint64 // sorted by key
	asked        []uint64 // keys that exist, in random order
	ix           *pando.Frozen[uint64, uint64]
	out, outSlow []uint64 // results of Pando and of binary search
}

var errWrong = errors.New("the two answers differ; please report this with the output of this command")

// round runs one kind of query once with both methods.
type round func() (pando, search time.Duration, ops int, err error)

// A demonstration asks for a million keys in three rounds. Nearly all of its
// time goes into the binary searches beside Pando, half a microsecond each and
// more: twice the keys in five rounds take nearly three times as long.
const (
	rounds    = 3
	mostAsked = 1_000_000
)

// best runs a few rounds and takes the better time of each side: other
// programs on the machine only ever slow things down.
func best(run round) (fast, slow time.Duration, ops int, err error) {
	for r := range rounds {
		f, s, n, err := run()
		if err != nil {
			return 0, 0, 0, err
		}
		if r == 0 {
			fast, slow, ops = f, s, n
		}
		fast, slow = min(fast, f), min(slow, s)
	}
	return fast, slow, ops, nil
}

// A FrozenResult is the demonstration of an index that does not change.
type FrozenResult struct {
	Entries int     `json:"entries"`
	Builds  []Build `json:"builds"`
	Queries []Query `json:"queries"`
	RanOn   Place   `json:"ran_on"`
	Bytes   int64   `json:"bytes"`
	stats   pando.Stats
}

// A Build is the time that one way of building took.
type Build struct {
	From string        `json:"from"` // "sorted" or "shuffled"
	Took time.Duration `json:"took_ns"`
}

// A Query is one kind of query, in ns per key, range or entry.
type Query struct {
	Name   string  `json:"query"`
	Pando  float64 `json:"pando_ns"`
	Search float64 `json:"binary_search_ns"`
}

// Least is the smallest number of pairs that can be timed.
const Least = 1000

// Frozen builds an index of n pairs and times each kind of query next to a
// binary search of the same data, whose answers must be the same. It says on progress
// what it does.
func Frozen(n int, seed uint64, progress io.Writer) (*FrozenResult, error) {
	fmt.Fprintf(progress, "generating %d pairs ...\n", n)
	d := generate(n, seed)
	fmt.Fprintf(progress, "building ...\n")
	builds, err := d.build(seed)
	if err != nil {
		return nil, err
	}
	defer d.ix.Close()
	all := &FrozenResult{Entries: n, Builds: builds, stats: d.ix.Stats()}
	all.RanOn, all.Bytes = PlaceOf(all.stats), all.stats.TotalBytes
	for _, q := range []struct {
		name string
		run  round
	}{
		{"Get, one key at a time", d.single},
		{"GetBatch, all cores", d.batch},
		{"RankBatch, all cores", d.ranks},
		{"RangeBatch, 16 entries a range", d.ranges},
		{"All, every entry in order", d.scan},
	} {
		fmt.Fprintf(progress, "asking: %s ...\n", q.name)
		fast, slow, ops, err := best(q.run)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		per := func(t time.Duration) float64 { return float64(t.Nanoseconds()) / float64(ops) }
		all.Queries = append(all.Queries, Query{q.name, per(fast), per(slow)})
	}
	return all, nil
}

// Print writes the result for people.
func (d *FrozenResult) Print(out io.Writer) {
	for _, b := range d.Builds {
		fmt.Fprintf(out, "built from %d %s pairs in %v (%.1f ns a pair)\n", d.Entries, b.From,
			b.Took.Round(100*time.Microsecond), float64(b.Took.Nanoseconds())/float64(d.Entries))
	}
	fmt.Fprintf(out, "\n%-38s %12s %16s %8s\n", "query", "Pando", "binary search", "ratio")
	for _, q := range d.Queries {
		fmt.Fprintf(out, "%-38s %9.1f ns %13.1f ns %7.1fx\n", q.Name, q.Pando, q.Search, q.Search/q.Pando)
	}
	s := d.stats
	fmt.Fprintf(out, "\nran on: %s\n", d.RanOn)
	fmt.Fprintf(out, "index:  %d entries in %.1f MB, %.1f bytes each; %d inner levels of fanout %d, %s layout\n",
		s.Len, float64(s.TotalBytes)/1e6, float64(s.TotalBytes)/float64(s.Len), s.Levels, s.Fanout, s.Layout)
	fmt.Fprintf(out, "All answers were compared and are equal. Times are per key, range or entry, best of %d rounds.\n", rounds)
}

// generate makes n sorted pairs with random gaps, and keys to look up.
func generate(n int, seed uint64) *data {
	rng := rand.New(rand.NewPCG(seed, 0))
	d := &data{keys: make([]uint64, n), vals: make([]uint64, n)}
	gap := ^uint64(0) / uint64(n)
	for i := range d.keys {
		d.keys[i] = uint64(i)*gap + rng.Uint64N(gap)
		d.vals[i] = d.keys[i] * 3
	}
	d.asked = make([]uint64, min(n, mostAsked))
	for i := range d.asked {
		d.asked[i] = d.keys[rng.IntN(n)]
	}
	d.out, d.outSlow = make([]uint64, len(d.asked)), make([]uint64, len(d.asked))
	return d
}

// build times building the index from sorted and from shuffled pairs.
func (d *data) build(seed uint64) ([]Build, error) {
	ix, sorted, err := freeze(d.keys, d.vals)
	if err != nil {
		return nil, err
	}
	d.ix = ix
	keys, vals := slices.Clone(d.keys), slices.Clone(d.vals)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(keys), func(i, j int) {
		keys[i], keys[j] = keys[j], keys[i]
		vals[i], vals[j] = vals[j], vals[i]
	})
	other, shuffled, err := freeze(keys, vals)
	if err != nil {
		return nil, err
	}
	return []Build{{"sorted", sorted}, {"shuffled", shuffled}}, other.Close()
}

// freeze builds an index a few times and returns the time of the fastest
// build.
func freeze(keys, vals []uint64) (ix *pando.Frozen[uint64, uint64], least time.Duration, err error) {
	for range 3 {
		if ix != nil {
			ix.Close()
		}
		took := Timed(func() { ix, err = pando.Freeze(keys, vals) })
		if err != nil {
			return nil, 0, err
		}
		if least == 0 || took < least {
			least = took
		}
	}
	return ix, least, nil
}

// Timed times a function after a garbage collection, so that none falls into
// the measurement.
func Timed(f func()) time.Duration {
	runtime.GC()
	start := time.Now()
	f()
	return time.Since(start)
}

// searchAll looks keys up by binary search.
func (d *data) searchAll(keys []uint64) {
	for i, k := range keys {
		if at, ok := slices.BinarySearch(d.keys, k); ok {
			d.outSlow[i] = d.vals[at]
		}
	}
}

func (d *data) single() (fast, slow time.Duration, ops int, err error) {
	keys := d.asked[:len(d.asked)/4]
	fast = Timed(func() {
		for i, k := range keys {
			d.out[i], _ = d.ix.Get(k)
		}
	})
	slow = Timed(func() { d.searchAll(keys) })
	return fast, slow, len(keys), d.equal(len(keys))
}

func (d *data) batch() (fast, slow time.Duration, ops int, err error) {
	fast = Timed(func() { d.ix.GetBatch(d.asked, d.out, nil) })
	slow = Timed(func() { d.searchAll(d.asked) })
	return fast, slow, len(d.asked), d.equal(len(d.asked))
}

func (d *data) ranks() (fast, slow time.Duration, ops int, err error) {
	ranks := make([]int, len(d.asked))
	fast = Timed(func() { d.ix.RankBatch(d.asked, ranks) })
	slow = Timed(func() {
		for i, k := range d.asked {
			at, _ := slices.BinarySearch(d.keys, k)
			d.outSlow[i] = uint64(at)
		}
	})
	for i, r := range ranks {
		d.out[i] = uint64(r)
	}
	return fast, slow, len(ranks), d.equal(len(ranks))
}

func (d *data) ranges() (fast, slow time.Duration, ops int, err error) {
	const width = 16
	lo := d.asked[:len(d.asked)/8]
	hi := make([]uint64, len(lo))
	for i, k := range lo {
		at, _ := slices.BinarySearch(d.keys, k)
		hi[i] = d.keys[min(at+width, len(d.keys))-1]
	}
	var r *pando.Ranges[uint64, uint64]
	fast = Timed(func() { r = d.ix.RangeBatch(lo, hi, 0) })
	slow = Timed(func() {
		for i, k := range lo {
			at, _ := slices.BinarySearch(d.keys, k)
			sum := uint64(0)
			for ; at < len(d.keys) && d.keys[at] <= hi[i]; at++ {
				sum += d.vals[at]
			}
			d.outSlow[i] = sum
		}
	})
	for i := range r.Len() {
		_, vals := r.At(i)
		d.out[i] = 0
		for _, v := range vals {
			d.out[i] += v
		}
	}
	return fast, slow, len(lo), d.equal(len(lo))
}

func (d *data) scan() (fast, slow time.Duration, ops int, err error) {
	d.out[0], d.outSlow[0] = 0, 0
	fast = Timed(func() {
		for k, v := range d.ix.All() {
			d.out[0] += k ^ v
		}
	})
	slow = Timed(func() {
		for i, k := range d.keys {
			d.outSlow[0] += k ^ d.vals[i]
		}
	})
	return fast, slow, len(d.keys), d.equal(1)
}

// equal compares the first n answers of both methods.
func (d *data) equal(n int) error {
	if !slices.Equal(d.out[:n], d.outSlow[:n]) {
		return errWrong
	}
	return nil
}
