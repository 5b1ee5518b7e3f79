package cuart

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/work"
)

var cuartRoot = &contest.Experiment{
	Name:     "cuart-root",
	About:    "lookups in a radix tree without a root table, and with tables over more and more bytes behind the common prefix",
	Per:      "one key found",
	CaseName: "keys",
	Sizes:    []int{1 * contest.Mega, 16 * contest.Mega},
	Run:      runCuartRoot,
}

// rootTables are the root tables to compare. The first is Pando's own choice, with a wide
// root where that pays; the others have no wide nodes.
var rootTables = []struct {
	label string
	table rootTable
}{
	{"Pando radix", rootTable{}},
	{"a root table", rootTable{}},
	{"no root table", rootTable{Off: true}},
	{"1 byte", rootTable{Bytes: 1}},
	{"2 bytes", rootTable{Bytes: 2}},
	{"3 bytes", rootTable{Bytes: 3}},
	{"4 bytes", rootTable{Bytes: 4}},
	{"8 bytes", rootTable{Bytes: 8}},
	{"16 bytes", rootTable{Bytes: 16}},
}

func runCuartRoot(s *contest.Session) error {
	kinds := []data.TextKind{
		{Label: "32 bytes", Bytes: 32, Keys: func(n int, seed uint64) []string { return randomTexts(n, 32, seed) }},
		{Label: "UUIDs", Bytes: data.UUIDBytes, Keys: data.UUIDs},
		{Label: "URLs", Bytes: 60, Keys: data.URLs},
	}
	for _, n := range s.Sizes {
		for _, kind := range kinds {
			if err := withTexts(s, kind, n, func(t *data.Texts, threads int) error { return rootContest(s, t, threads) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// rootContest finds keys by each table.
func rootContest(s *contest.Session, t *data.Texts, threads int) error {
	r := work.NewTextRanks(s, t)
	c := &contest.Contest{N: len(t.Keys), Threads: threads, Label: t.Label, Ops: s.Queries, Fresh: func(round int) { r.Draw(s.Seed, round) }}
	for i, x := range rootTables {
		if !s.Fits(x.label, len(t.Keys), t.Mean+60) {
			continue
		}
		s.Say("building a radix tree, %s ...", x.label)
		tree, err := buildTrie(t.Keys, x.table, wideNodes{Off: i > 0}, threads)
		if err != nil {
			return fmt.Errorf("%s: %w", x.label, err)
		}
		defer tree.Release()
		sub := r.Subject(x.label, float64(tree.Stats().TotalBytes)/float64(max(1, len(t.Keys))), tree)
		sub.Reference = i == 0
		c.Subjects = append(c.Subjects, sub)
	}
	return s.Compete(c)
}
