package cuart

import (
	"encoding/binary"
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/work"
)

var radixWide = &contest.Experiment{
	Name:     "radix-wide",
	About:    "lookups in a frozen radix tree with wide nodes (START) where a cost model places them, without, and with some below the root table, too",
	Per:      "one key found",
	CaseName: "keys, work",
	Sizes:    []int{contest.Mega},
	Run:      runRadixWide,
}

// wideForms are the trees to compare. The first is Pando's own choice.
var wideForms = []struct {
	label string
	wide  wideNodes
}{
	{"Pando radix", wideNodes{}},
	{"no wide nodes", wideNodes{Off: true}},
	{"below tops, too", wideNodes{Below: true}},
}

// wideKinds are the keys: those of strings-tree, and numbers, as 8 bytes.
var wideKinds = append([]data.TextKind{
	{Label: numbersLabel + ", 0 to n-1", Bytes: 8, Keys: func(n int, _ uint64) []string { return bigEndians(n, func(i int) uint64 { return uint64(i) }) }},
	{Label: numbersLabel + ", gaps up to 15", Bytes: 8, Keys: func(n int, seed uint64) []string {
		rng, at := data.NewRand(seed, data.StreamTexts), uint64(0)
		return bigEndians(n, func(int) uint64 { at += 1 + rng.Uint64N(15); return at })
	}},
	{Label: numbersLabel + ", random", Bytes: 8, Keys: func(n int, seed uint64) []string {
		keys := data.SortedKeys[uint64](n, seed)
		return bigEndians(n, func(i int) uint64 { return keys[i] })
	}},
	{Label: "phones", Bytes: data.PhoneBytes, Keys: data.Phones},
}, data.TreeTextKinds...)

const numbersLabel = "uint64"

// bigEndians returns numbers as strings of 8 bytes, the greatest first.
func bigEndians(n int, number func(i int) uint64) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(binary.BigEndian.AppendUint64(nil, number(i)))
	}
	return keys
}

func runRadixWide(s *contest.Session) error {
	for _, n := range s.Sizes {
		for _, kind := range wideKinds {
			if err := withTexts(s, kind, n, func(t *data.Texts, threads int) error { return wideContests(s, t, threads) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// wideContests finds keys in each form, in batches and one call a key.
func wideContests(s *contest.Session, t *data.Texts, threads int) error {
	r := work.NewTextRanks(s, t)
	fresh := func(round int) { r.Draw(s.Seed, round) }
	batches := &contest.Contest{N: len(t.Keys), Threads: threads, Label: t.Label + ", batches", Ops: s.Queries, Fresh: fresh}
	calls := &contest.Contest{N: len(t.Keys), Threads: threads, Label: t.Label + ", calls", Ops: s.Queries, Fresh: fresh}
	for i, x := range wideForms {
		if !s.Fits(x.label, len(t.Keys), t.Mean+60) {
			continue
		}
		s.Say("building a radix tree, %s ...", x.label)
		tree, bytes, err := wideTree(t, x.wide, threads)
		if err != nil {
			return fmt.Errorf("%s: %w", x.label, err)
		}
		defer tree.Release()
		for _, c := range []*contest.Contest{batches, calls} {
			var sys work.TextRanker = tree
			if c == calls {
				sys = seeker{tree, threads}
			}
			sub := r.Subject(x.label, bytes/float64(max(1, len(t.Keys))), sys)
			sub.Reference = i == 1
			c.Subjects = append(c.Subjects, sub)
		}
	}
	if err := s.Compete(batches); err != nil {
		return err
	}
	return s.Compete(calls)
}

// wideFinder is a tree that is measured.
type wideFinder interface {
	work.TextRanker
	Seek(key string) (rank int, equal bool)
	Release()
}

// wideTree builds a tree, of numbers if that is what the keys are.
func wideTree(t *data.Texts, w wideNodes, threads int) (wideFinder, float64, error) {
	if len(t.Label) < len(numbersLabel) || t.Label[:len(numbersLabel)] != numbersLabel {
		tree, err := buildTrie(t.Keys, rootTable{}, w, threads)
		if err != nil {
			return nil, 0, err
		}
		return tree, float64(tree.Stats().TotalBytes), nil
	}
	codes := make([]uint64, len(t.Keys))
	for i, k := range t.Keys {
		codes[i] = codeOf(k)
	}
	tree, err := buildNumberTrie(codes, w, threads)
	if err != nil {
		return nil, 0, err
	}
	return tree, float64(tree.Stats().TotalBytes), nil
}

// seeker makes one call a key.
type seeker struct {
	wideFinder
	threads int
}

func (c seeker) Rank(q []string, ranks []int) {
	contest.Spread(c.threads, len(q), func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			ranks[i], _ = c.Seek(q[i])
		}
		return 0
	})
}
