package text

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var treeGetStrings = &contest.Experiment{
	Name:     "tree-get-strings",
	About:    "GetBatch of a Tree of strings, filled in random order, against that of a Frozen: with its own layout, and with the radix one",
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    contest.UsualSizes,
	Run:      runTreeGetStrings,
}

func runTreeGetStrings(s *contest.Session) error { return eachTreeTexts(s, 2, 3, treeGetTexts) }

func treeGetTexts(s *contest.Session, t *data.Texts) error {
	s.Say("filling a tree, %s ...", t.Label)
	tree := ours.NewTreeText()
	defer tree.Close()
	if err := setBatches(tree, newTextFill(s, t)); err != nil {
		return err
	}
	systems := []peers.TextSystem{tree}
	for _, f := range []struct {
		label string
		opts  []pando.Option
	}{
		{"Pando Frozen", nil},
		{"Pando Frozen, radix", []pando.Option{pando.Layout(pando.Radix)}},
	} {
		frozen, err := ours.FreezeTexts(t, f.label, 1, f.opts...)
		if err != nil {
			return err
		}
		defer frozen.Close()
		systems = append(systems, frozen)
	}
	l := work.NewTextLookups(s, t)
	c := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label, Ops: s.Queries, Fresh: func(round int) { l.Draw(s.Seed, round) }}
	for i, sys := range systems {
		c.Subjects = append(c.Subjects, l.Subject(sys))
		c.Subjects[i].Reference = i == 0
	}
	return s.Compete(c)
}

// setBatches sets keys in batches of a million.
func setBatches(t *ours.TreeText, f *textFill) error {
	for lo := 0; lo < len(f.keys); lo += contest.Mega {
		hi := min(lo+contest.Mega, len(f.keys))
		if err := t.Tree.SetBatch(f.keys[lo:hi], f.vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}
