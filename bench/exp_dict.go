package main

import (
	"math/rand/v2"
	"slices"
)

// The experiments of this file redo the measurements of a thesis, which fills
// maps with sequences and then looks the same sequences up.

const thesis21 = "thesis Implementation of B-trees on GPU (2021)"

var dictSearch = &experiment{
	name:     "dict-search",
	about:    "lookups of all keys in the order of their insertion, in trees of Go and C++: shuffled, ascending, Gaussian",
	figure:   "tables 5.2 and 5.3 and fig. 5.2 of the " + thesis21 + ", CPU part",
	per:      "one key looked up",
	caseName: "keys",
	sizes:    dictSizes,
	run:      runDictSearch,
}

var dictInsert = &experiment{
	name:     "dict-insert",
	about:    "a map filled from empty, in trees of Go and C++: shuffled, ascending, Gaussian",
	figure:   "table 5.4 and fig. 5.3 and 5.4 of the " + thesis21 + ", CPU part",
	per:      "one key set",
	caseName: "keys",
	sizes:    dictSizes,
	run:      runDictInsert,
}

// dictSizes are some of the thesis' sizes; it has every power of two from 2^10
// to 2^25.
var dictSizes = []int{kilo, 16 * kilo, 256 * kilo, mega, 4 * mega}

// sequence is keys in the order in which a map gets them.
type sequence struct {
	name string
	keys func(rng *rand.Rand, n int) []uint64
}

// sequences of the thesis; its descending and almost sorted ones are in none of
// its figures.
var sequences = []sequence{
	{"shuffled", func(rng *rand.Rand, n int) []uint64 {
		keys := countUp(n)
		rng.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		return keys
	}},
	{"ascending", func(_ *rand.Rand, n int) []uint64 { return countUp(n) }},
	{"Gaussian", gaussian},
}

// countUp returns 0 to n-1.
func countUp(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	return keys
}

// gaussian draws distinct whole numbers around 2^31, with a deviation of 2^28 that
// leaves room for the most keys.
func gaussian(rng *rand.Rand, n int) []uint64 {
	type bits [512]uint64
	seen := map[uint64]*bits{} // pieces of a bitmap, which is quicker than a map of keys
	keys := make([]uint64, 0, n)
	for len(keys) < n {
		x := rng.NormFloat64()*(1<<28) + 1<<31
		if x < 0 {
			continue
		}
		k := uint64(x)
		if seen[k>>15] == nil {
			seen[k>>15] = new(bits)
		}
		if word, bit := &seen[k>>15][k>>6&511], uint64(1)<<(k&63); *word&bit == 0 {
			*word |= bit
			keys = append(keys, k)
		}
	}
	return keys
}

// eachSequence calls body with a dataset in the order of insertion.
func eachSequence(s *session, body func(name string, d *dataset[uint64]) error) error {
	return eachOf(s, sequences, body)
}

func eachOf(s *session, all []sequence, body func(name string, d *dataset[uint64]) error) error {
	for _, n := range s.sizes {
		for _, q := range all {
			if !s.room(q.name+" keys", n, 64, "use a smaller --n") {
				continue
			}
			d := &dataset[uint64]{keys: q.keys(newRand(s.seed, streamShuffle), n)}
			for _, k := range d.keys {
				d.vals = append(d.vals, valueOf(k))
			}
			if err := body(q.name, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// dictMakers are the trees that a thread fills. The others are left out: they
// cannot have the key 0, or are slower than these.
func dictMakers(s *session) []storeMaker {
	return append([]storeMaker{makeTreeStore(1), makeTidwallStore(), makeGoogleStore()}, cppStores(s)...)
}

func runDictSearch(s *session) error {
	makers := dictMakers(s)
	return eachSequence(s, func(name string, d *dataset[uint64]) error {
		stores, err := buildStores(s, len(d.keys), makers, growth{d}.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		l := newLookups(s, d)
		l.q = slices.Clone(d.keys[:min(len(d.keys), len(l.q))])
		for i := range l.want {
			l.want[i] = true
		}
		c := &contest{n: len(d.keys), threads: 1, label: name, ops: len(l.q)}
		for i, st := range stores {
			c.subjects = append(c.subjects, l.ask(st, st.Name(), 0, i == 0))
		}
		return s.compete(c)
	})
}

func runDictInsert(s *session) error {
	makers := dictMakers(s)
	return eachSequence(s, func(name string, d *dataset[uint64]) error {
		c := &contest{n: len(d.keys), threads: 1, label: name, ops: len(d.keys)}
		for i, m := range makers {
			if s.fits(m.name, len(d.keys), 2*m.peak) {
				c.subjects = append(c.subjects, fills(s, d, m, m.name, i == 0, store.Set))
			}
			if i == 0 {
				batch := func(st store, keys, vals []uint64) error { return st.(*treeStore).SetBatch(keys, vals) }
				c.subjects = append(c.subjects, fills(s, d, m, namePandoTree+", SetBatch", false, batch))
			}
		}
		return s.compete(c)
	})
}
