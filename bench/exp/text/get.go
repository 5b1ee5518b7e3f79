package text

import (
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var stringsExp = &contest.Experiment{
	Name:     "strings",
	About:    "a batch of Get, strings to uint64, random hits, beside every peer",
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    []int{1 * contest.Mega, 16 * contest.Mega},
	Run:      runStrings,
}

func runStrings(s *contest.Session) error {
	for _, n := range s.Sizes {
		for _, kind := range data.TextKinds {
			debug.FreeOSMemory() // frees the memory of the previous ones
			// Generating them temporarily takes as much again.
			if !s.Room(kind.Label, n, 2*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
				continue
			}
			if err := stringContest(s, data.NewTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func stringContest(s *contest.Session, t *data.Texts) error {
	systems, err := peers.BuildTexts(s, t, append(ours.Texts(), peers.TextMakers()...))
	if err != nil {
		return err
	}
	defer peers.CloseAll(systems)
	l := work.NewTextLookups(s, t)
	c := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label, Ops: s.Queries,
		Fresh: func(round int) { l.Draw(s.Seed, round) }}
	for i, sys := range systems {
		sub := l.Subject(sys)
		sub.Reference = i == 0
		c.Subjects = append(c.Subjects, sub)
	}
	return s.Compete(c)
}
