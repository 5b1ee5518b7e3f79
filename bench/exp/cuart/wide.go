package cuart

import (
	"encoding/binary"
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/trie"
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
	wide  trie.Wide
}{
	{"Pando radix", trie.Wide{}},
	{"no wide nodes", trie.Wide{Off: true}},
	{"below tops, too", trie.Wide{Below: true}},
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
func wideTree(t *data.Texts, w trie.Wide, threads int) (wideFinder, float64, error) {
	cfg := layout.Config{Pages: inside.HugePages}
	if len(t.Label) < len(numbersLabel) || t.Label[:len(numbersLabel)] != numbersLabel {
		tree, err := trie.Strings{Wide: w}.Build(t.Keys, nil, cfg)
		if err != nil {
			return nil, 0, err
		}
		return finder{tree, threads}, float64(tree.Stats().TotalBytes), nil
	}
	codes := make([]uint64, len(t.Keys))
	for i, k := range t.Keys {
		codes[i] = codeOf(k)
	}
	tree, err := trie.Numbers[uint64]{Wide: w}.Build(layout.Source[uint64]{Len: len(codes), Codes: codes}, cfg)
	if err != nil {
		return nil, 0, err
	}
	return numberFinder{tree, threads}, float64(tree.Stats().TotalBytes), nil
}

func codeOf(key string) uint64 { return binary.BigEndian.Uint64([]byte(key)) }

// numberFinder is a tree of numbers whose lookups are compared.
type numberFinder struct {
	layout.Tree[uint64]
	threads int
}

func (f numberFinder) Rank(q []string, ranks []int) {
	contest.Spread(f.threads, len(q), func(lo, hi int) int {
		var codes [256]uint64
		for lo < hi {
			n := min(hi-lo, len(codes))
			for i, k := range q[lo : lo+n] {
				codes[i] = codeOf(k)
			}
			f.Tree.Find(codes[:n], ranks[lo:lo+n])
			lo += n
		}
		return 0
	})
}

func (f numberFinder) Seek(key string) (rank int, equal bool) { return f.Tree.Seek(codeOf(key)) }

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
