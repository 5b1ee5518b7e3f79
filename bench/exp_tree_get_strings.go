package main

import "github.com/pando-index/pando"

var treeGetStrings = &experiment{
	name:     "tree-get-strings",
	about:    "GetBatch of a Tree of strings, filled in random order, against that of a Frozen: with its own layout, and with the radix one",
	per:      "one key looked up",
	caseName: "keys",
	sizes:    usualSizes,
	run:      runTreeGetStrings,
}

func runTreeGetStrings(s *session) error { return eachTreeTexts(s, 2, 3, treeGetTexts) }

func treeGetTexts(s *session, t *texts) error {
	s.say("filling a tree, %s ...", t.label)
	tree := newTreeText().(*treeText)
	defer tree.Close()
	if err := tree.setBatches(newTextFill(s, t)); err != nil {
		return err
	}
	systems := []textSystem{tree}
	for _, f := range []struct {
		label string
		opts  []pando.Option
	}{
		{"Pando Frozen", nil},
		{"Pando Frozen, radix", []pando.Option{pando.Layout(pando.Radix)}},
	} {
		frozen, err := freezeTexts(t, f.label, 1, f.opts...)
		if err != nil {
			return err
		}
		defer frozen.Close()
		systems = append(systems, frozen)
	}
	l := newTextLookups(s, t)
	c := &contest{n: len(t.keys), threads: 1, label: t.label, ops: s.queries, fresh: func(round int) { l.draw(s.seed, round) }}
	for i, sys := range systems {
		c.subjects = append(c.subjects, l.subject(sys))
		c.subjects[i].reference = i == 0
	}
	return s.compete(c)
}

// setBatches sets keys in batches of a million.
func (t *treeText) setBatches(f *textFill) error {
	for lo := 0; lo < len(f.keys); lo += mega {
		hi := min(lo+mega, len(f.keys))
		if err := t.tree.SetBatch(f.keys[lo:hi], f.vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}
