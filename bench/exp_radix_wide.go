package main

import (
	"encoding/binary"
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/trie"
)

var radixWide = &experiment{
	name:     "radix-wide",
	about:    "lookups in a frozen radix tree with wide nodes (START) where a cost model places them, without, and with some below the root table, too",
	per:      "one key found",
	caseName: "keys, work",
	sizes:    []int{mega},
	run:      runRadixWide,
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
var wideKinds = append([]textKind{
	{numbersLabel + ", 0 to n-1", 8, func(n int, _ uint64) []string { return bigEndians(n, func(i int) uint64 { return uint64(i) }) }},
	{numbersLabel + ", gaps up to 15", 8, func(n int, seed uint64) []string {
		rng, at := newRand(seed, streamTexts), uint64(0)
		return bigEndians(n, func(int) uint64 { at += 1 + rng.Uint64N(15); return at })
	}},
	{numbersLabel + ", random", 8, func(n int, seed uint64) []string {
		keys := sortedKeys[uint64](n, seed)
		return bigEndians(n, func(i int) uint64 { return keys[i] })
	}},
	{"phones", phoneBytes, phones},
}, treeTextKinds...)

const numbersLabel = "uint64"

// bigEndians returns numbers as strings of 8 bytes, the greatest first.
func bigEndians(n int, number func(i int) uint64) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(binary.BigEndian.AppendUint64(nil, number(i)))
	}
	return keys
}

func runRadixWide(s *session) error {
	for _, n := range s.sizes {
		for _, kind := range wideKinds {
			if err := s.withTexts(kind, n, func(t *texts, threads int) error { return wideContests(s, t, threads) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// wideContests finds keys in each form, in batches and one call a key.
func wideContests(s *session, t *texts, threads int) error {
	r := newTextRanks(s, t)
	fresh := func(round int) { r.draw(s.seed, round) }
	batches := &contest{n: len(t.keys), threads: threads, label: t.label + ", batches", ops: s.queries, fresh: fresh}
	calls := &contest{n: len(t.keys), threads: threads, label: t.label + ", calls", ops: s.queries, fresh: fresh}
	for i, x := range wideForms {
		if !s.fits(x.label, len(t.keys), t.mean+60) {
			continue
		}
		s.say("building a radix tree, %s ...", x.label)
		tree, bytes, err := wideTree(t, x.wide, threads)
		if err != nil {
			return fmt.Errorf("%s: %w", x.label, err)
		}
		defer tree.Release()
		for _, c := range []*contest{batches, calls} {
			var sys textRanker = tree
			if c == calls {
				sys = seeker{tree, threads}
			}
			sub := r.subject(x.label, bytes/float64(max(1, len(t.keys))), sys)
			sub.reference = i == 1
			c.subjects = append(c.subjects, sub)
		}
	}
	if err := s.compete(batches); err != nil {
		return err
	}
	return s.compete(calls)
}

// wideFinder is a tree that is measured.
type wideFinder interface {
	textRanker
	Seek(key string) (rank int, equal bool)
	Release()
}

// wideTree builds a tree, of numbers if that is what the keys are.
func wideTree(t *texts, w trie.Wide, threads int) (wideFinder, float64, error) {
	cfg := layout.Config{Pages: arena.HugeAll}
	if len(t.label) < len(numbersLabel) || t.label[:len(numbersLabel)] != numbersLabel {
		tree, err := trie.Strings{Wide: w}.Build(t.keys, nil, cfg)
		if err != nil {
			return nil, 0, err
		}
		return finder{tree, threads}, float64(tree.Stats().TotalBytes), nil
	}
	codes := make([]uint64, len(t.keys))
	for i, k := range t.keys {
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
	spread(f.threads, len(q), func(lo, hi int) int {
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
	spread(c.threads, len(q), func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			ranks[i], _ = c.Seek(q[i])
		}
		return 0
	})
}
