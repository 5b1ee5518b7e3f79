package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	tidwall "github.com/tidwall/btree"
)

var build = &experiment{
	name:     "build",
	about:    "Freeze from sorted and from unsorted uint64 pairs",
	figure:   "fig. 15, CPU part (building the implicit tree anew), of the " + paper16,
	per:      "one pair put into the index",
	caseName: "input",
	sizes:    usualSizes,
	threads:  allThreads(),
	run:      runBuild,
}

// builder is one way to make an index of all pairs.
type builder[W word] struct {
	name string
	peak float64 // as in maker, but with the collector off
	peer bool    // uses one thread, whatever was requested
	make func(d *dataset[W], threads int) (made[W], error)
}

// made is what a builder made.
type made[W word] struct {
	entries int
	get     func(W) (W, bool) // to check the result; may be nil
	close   func()            // may be nil
	inner   int64             // bytes of inner levels, where that is known
	all     getter[W]         // get for many keys, where there is one
	levels  []byte            // the inner levels, where they can be had
}

// getter looks many keys up, and returns how many are there.
type getter[W word] interface {
	Get(keys, vals []W, found []bool) (hits int)
}

// getsBy is a function as a getter.
type getsBy[W word] func(keys, vals []W, found []bool) (hits int)

func (f getsBy[W]) Get(keys, vals []W, found []bool) (hits int) { return f(keys, vals, found) }

// maxBuildSeconds bounds one build, in units of --seconds: building the
// slowest peer from sorted input stays below that at 64M, random insertion
// does not.
const maxBuildSeconds = 20

func runBuild(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		if err := buildContests(s, d, "sorted", sortedBuilders[uint64]()); err != nil {
			return err
		}
		s.say("shuffling %s pairs ...", sizeText(len(d.keys)))
		return buildContests(s, d.shuffled(s.seed), "unsorted", unsortedBuilders[uint64]())
	})
}

func sortedBuilders[W word]() []builder[W] {
	pair := pairBytes[W]()
	return []builder[W]{
		{name: namePando, peak: 2 * pair, make: freezeOnce[W]},
		{name: nameTidwallMap + ", Load", peak: 10 * pair, peer: true, make: buildTidwall[W](loadTidwallMap[W])},
		{name: nameGoogle, peak: 10 * pair, peer: true, make: buildGoogle[W]},
		{name: nameGoMap, peak: mapPeak * pair, peer: true, make: buildGoMap[W]},
		{name: "limit: copy of the pairs", peak: 2 * pair, peer: true, make: copyPairs[W]},
	}
}

func unsortedBuilders[W word]() []builder[W] {
	pair := pairBytes[W]()
	return []builder[W]{
		{name: namePando, peak: 4 * pair, make: freezeOnce[W]},
		{name: nameTidwallMap + ", Set", peak: 10 * pair, peer: true, make: buildTidwall[W](setTidwallMap[W])},
		{name: nameGoogle, peak: 10 * pair, peer: true, make: buildGoogle[W]},
		{name: nameGoMap, peak: mapPeak * pair, peer: true, make: buildGoMap[W]},
		{name: "slices.SortFunc of pairs", peak: 2 * pair, peer: true, make: sortPairs[W]},
	}
}

func buildTidwall[W word](load func(*dataset[W]) *tidwall.Map[W, W]) func(*dataset[W], int) (made[W], error) {
	return func(d *dataset[W], _ int) (made[W], error) {
		tree := load(d)
		return made[W]{entries: tree.Len(), get: tree.Get}, nil
	}
}

func setTidwallMap[W word](d *dataset[W]) *tidwall.Map[W, W] {
	tree := new(tidwall.Map[W, W])
	for i, k := range d.keys {
		tree.Set(k, d.vals[i])
	}
	return tree
}

func buildGoogle[W word](d *dataset[W], _ int) (made[W], error) {
	tree := loadGoogle(d)
	return made[W]{entries: tree.Len(), get: func(k W) (W, bool) {
		p, ok := tree.Get(pair[W]{key: k})
		return p.val, ok
	}}, nil
}

func buildGoMap[W word](d *dataset[W], _ int) (made[W], error) {
	m := loadGoMap(d)
	return made[W]{entries: len(m), get: func(k W) (W, bool) { v, ok := m[k]; return v, ok }}, nil
}

func sortPairs[W word](d *dataset[W], _ int) (made[W], error) {
	pairs := make([]pair[W], len(d.keys))
	for i, k := range d.keys {
		pairs[i] = pair[W]{k, d.vals[i]}
	}
	slices.SortFunc(pairs, func(a, b pair[W]) int { return cmp.Compare(a.key, b.key) })
	return made[W]{entries: len(pairs), get: func(k W) (v W, ok bool) {
		at, ok := slices.BinarySearchFunc(pairs, k, func(p pair[W], k W) int { return cmp.Compare(p.key, k) })
		if ok {
			v = pairs[at].val
		}
		return v, ok
	}}, nil
}

func copyPairs[W word](d *dataset[W], _ int) (made[W], error) {
	keys, vals := slices.Clone(d.keys), slices.Clone(d.vals)
	return made[W]{entries: min(len(keys), len(vals))}, nil
}

// buildContests lets the builders take turns, for each number of threads. The
// peers use one thread and so run with the first number only.
func buildContests[W word](s *session, d *dataset[W], input string, builders []builder[W]) error {
	for i, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: input, ops: len(d.keys)}
		for _, b := range builders {
			if b.peer && (i > 0 || !quickEnough(s, d, b)) || !s.fits(b.name, len(d.keys), b.peak) {
				continue
			}
			sub := buildSubject(s, d, b, threads)
			sub.reference = len(c.subjects) == 0 && isPando(b.name)
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// quickEnough estimates the time of one build from a part of the pairs, too
// low rather than too high, because trees get slower as they grow.
func quickEnough[W word](s *session, d *dataset[W], b builder[W]) bool {
	const parts = 64
	n := len(d.keys) / parts
	if n < 4*kilo || !s.wanted(b.name) {
		return true
	}
	start := time.Now()
	if _, err := b.make(&dataset[W]{d.keys[:n], d.vals[:min(n, len(d.vals))]}, 1); err != nil {
		return true // the contest will meet the error again, and report it
	}
	seconds := time.Since(start).Seconds() * parts
	if seconds <= maxBuildSeconds*s.seconds {
		return true
	}
	s.skip("%s at n %s: a build takes %.0f s or more; --seconds %.0f lets it run",
		b.name, sizeText(len(d.keys)), seconds, seconds/maxBuildSeconds+1)
	return false
}

func buildSubject[W word](s *session, d *dataset[W], b builder[W], threads int) *subject {
	var m made[W]
	return &subject{
		system: b.name,
		whole:  true,
		do: func(int) (err error) {
			m, err = b.make(d, threads)
			return err
		},
		check: func(int) error { return m.check(s, d) },
		reset: func() {
			if m.close != nil {
				m.close()
			}
			m = made[W]{}
			runtime.GC() // the garbage collector is off
		},
	}
}

// check looks some keys up in what was built.
func (m made[W]) check(s *session, d *dataset[W]) error {
	if m.entries != len(d.keys) {
		return fmt.Errorf("built %d entries of %d", m.entries, len(d.keys))
	}
	if m.get == nil {
		return nil
	}
	q := make([]W, kilo)
	d.hits(s.roundRand(0), q)
	for _, k := range q {
		if v, ok := m.get(k); !ok || v != valueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, v, ok)
		}
	}
	return nil
}
