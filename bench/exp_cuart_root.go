package main

import (
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/trie"
)

var cuartRoot = &experiment{
	name:     "cuart-root",
	about:    "lookups in a radix tree without a root table, and with tables over more and more bytes behind the common prefix",
	per:      "one key found",
	caseName: "keys",
	sizes:    []int{1 * mega, 16 * mega},
	run:      runCuartRoot,
}

// rootTables are the root tables to compare. The first is Pando's own choice, with a wide
// root where that pays; the others have no wide nodes.
var rootTables = []struct {
	label string
	table trie.Table
}{
	{"Pando radix", trie.Table{}},
	{"a root table", trie.Table{}},
	{"no root table", trie.Table{Off: true}},
	{"1 byte", trie.Table{Bytes: 1}},
	{"2 bytes", trie.Table{Bytes: 2}},
	{"3 bytes", trie.Table{Bytes: 3}},
	{"4 bytes", trie.Table{Bytes: 4}},
	{"8 bytes", trie.Table{Bytes: 8}},
	{"16 bytes", trie.Table{Bytes: 16}},
}

func runCuartRoot(s *session) error {
	kinds := []textKind{
		{"32 bytes", 32, func(n int, seed uint64) []string { return randomTexts(n, 32, seed) }},
		{"UUIDs", uuidBytes, uuids},
		{"URLs", 60, urls},
	}
	for _, n := range s.sizes {
		for _, kind := range kinds {
			if err := s.withTexts(kind, n, func(t *texts, threads int) error { return rootContest(s, t, threads) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// rootContest finds keys by each table.
func rootContest(s *session, t *texts, threads int) error {
	r := newTextRanks(s, t)
	c := &contest{n: len(t.keys), threads: threads, label: t.label, ops: s.queries, fresh: func(round int) { r.draw(s.seed, round) }}
	for i, x := range rootTables {
		if !s.fits(x.label, len(t.keys), t.mean+60) {
			continue
		}
		s.say("building a radix tree, %s ...", x.label)
		tree, err := trie.Strings{Table: x.table, Wide: trie.Wide{Off: i > 0}}.Build(t.keys, nil, layout.Config{Pages: arena.HugeAll})
		if err != nil {
			return fmt.Errorf("%s: %w", x.label, err)
		}
		defer tree.Release()
		sub := r.subject(x.label, float64(tree.Stats().TotalBytes)/float64(max(1, len(t.keys))), finder{tree, threads})
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return s.compete(c)
}

// finder is a tree of strings whose lookups are compared: where keys are distinct,
// what Find returns is the rank.
type finder struct {
	layout.StringTree
	threads int
}

func (f finder) Rank(q []string, ranks []int) {
	spread(f.threads, len(q), func(lo, hi int) int {
		f.StringTree.Find(q[lo:hi], ranks[lo:hi])
		return 0
	})
}
