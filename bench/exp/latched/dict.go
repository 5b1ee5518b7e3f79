package latched

import (
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

// The experiments of this file redo the measurements of a thesis, which fills
// maps with sequences and then looks the same sequences up.

const thesis21 = "thesis Implementation of B-trees on GPU (2021)"

var dictSearch = &contest.Experiment{
	Name:     "dict-search",
	About:    "lookups of all keys in the order of their insertion, in trees of Go and C++: shuffled, ascending, Gaussian",
	Figure:   "tables 5.2 and 5.3 and fig. 5.2 of the " + thesis21 + ", CPU part",
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    dictSizes,
	Run:      runDictSearch,
}

var dictInsert = &contest.Experiment{
	Name:     "dict-insert",
	About:    "a map filled from empty, in trees of Go and C++: shuffled, ascending, Gaussian",
	Figure:   "table 5.4 and fig. 5.3 and 5.4 of the " + thesis21 + ", CPU part",
	Per:      "one key set",
	CaseName: "keys",
	Sizes:    dictSizes,
	Run:      runDictInsert,
}

// dictSizes are some of the thesis' sizes; it has every power of two from 2^10
// to 2^25.
var dictSizes = []int{contest.Kilo, 16 * contest.Kilo, 256 * contest.Kilo, contest.Mega, 4 * contest.Mega}

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
func eachSequence(s *contest.Session, body func(name string, d *data.Dataset[uint64]) error) error {
	return eachOf(s, sequences, body)
}

func eachOf(s *contest.Session, all []sequence, body func(name string, d *data.Dataset[uint64]) error) error {
	for _, n := range s.Sizes {
		for _, q := range all {
			if !s.Room(q.name+" keys", n, 64, "use a smaller --n") {
				continue
			}
			d := &data.Dataset[uint64]{Keys: q.keys(data.NewRand(s.Seed, data.StreamShuffle), n)}
			for _, k := range d.Keys {
				d.Vals = append(d.Vals, data.ValueOf(k))
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
func dictMakers(s *contest.Session) []peers.StoreMaker {
	return append([]peers.StoreMaker{ours.MakeTreeStore(1), peers.MakeTidwallStore(), peers.MakeGoogleStore()}, peers.CPPStores(s)...)
}

func runDictSearch(s *contest.Session) error {
	makers := dictMakers(s)
	return eachSequence(s, func(name string, d *data.Dataset[uint64]) error {
		stores, err := peers.BuildStores(s, len(d.Keys), makers, work.Growth{Dataset: d}.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		l := work.NewLookups(s, d)
		l.Q = slices.Clone(d.Keys[:min(len(d.Keys), len(l.Q))])
		for i := range l.Want {
			l.Want[i] = true
		}
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Label: name, Ops: len(l.Q)}
		for i, st := range stores {
			c.Subjects = append(c.Subjects, l.Ask(st, st.Name(), 0, i == 0))
		}
		return s.Compete(c)
	})
}

func runDictInsert(s *contest.Session) error {
	makers := dictMakers(s)
	return eachSequence(s, func(name string, d *data.Dataset[uint64]) error {
		c := &contest.Contest{N: len(d.Keys), Threads: 1, Label: name, Ops: len(d.Keys)}
		for i, m := range makers {
			if s.Fits(m.Name, len(d.Keys), 2*m.Peak) {
				c.Subjects = append(c.Subjects, work.Fills(s, d, m, m.Name, i == 0, peers.Store.Set))
			}
			if i == 0 {
				batch := func(st peers.Store, keys, vals []uint64) error { return st.(*ours.TreeStore).SetBatch(keys, vals) }
				c.Subjects = append(c.Subjects, work.Fills(s, d, m, ours.NameTree+", SetBatch", false, batch))
			}
		}
		return s.Compete(c)
	})
}
