package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
)

// paper10 is the paper whose layouts internal/paged, packed and words are.
const paper10 = "FAST paper (SIGMOD 2010)"

var stringsExp = &experiment{
	name:     "strings",
	about:    "a batch of Get, strings to uint64, random hits, beside every peer",
	per:      "one key looked up",
	caseName: "keys",
	sizes:    []int{1 * mega, 16 * mega},
	run:      runStrings,
}

// textSystem is an index over texts.
type textSystem interface {
	Name() string
	BytesPerEntry() float64
	Get(q []string, vals []uint64, found []bool) (hits int)
	Close()
}

// textMaker builds one.
type textMaker struct {
	name  string
	peak  func(key float64) float64 // maximum bytes per entry while it is built, given the bytes per key
	build func(*texts) (textSystem, error)
}

func runStrings(s *session) error {
	for _, n := range s.sizes {
		for _, kind := range textKinds {
			debug.FreeOSMemory() // frees the memory of the previous ones
			// Generating them temporarily takes as much again.
			if !s.room(kind.label, n, 2*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
				continue
			}
			if err := stringContest(s, newTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func stringContest(s *session, t *texts) error {
	systems, err := buildTexts(s, t, append(pandoTexts(), textPeers()...))
	if err != nil {
		return err
	}
	defer closeAll(systems)
	l := newTextLookups(s, t)
	c := &contest{n: len(t.keys), threads: 1, label: t.label, ops: s.queries,
		fresh: func(round int) { l.draw(s.seed, round) }}
	for i, sys := range systems {
		sub := l.subject(sys)
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return s.compete(c)
}

// buildTexts builds the systems, the heaviest last, and leaves out those that
// do not fit into free memory. They are returned in the order of makers.
func buildTexts(s *session, t *texts, makers []textMaker) ([]textSystem, error) {
	order := make([]int, len(makers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(makers[a].peak(t.mean), makers[b].peak(t.mean)) })
	built := make([]textSystem, len(makers))
	for _, i := range order {
		m := makers[i]
		if !s.fits(m.name, len(t.keys), m.peak(t.mean)) {
			continue
		}
		s.say("building %s, %s %s ...", m.name, sizeText(len(t.keys)), t.label)
		restore := limitHeap()
		sys, err := m.build(t)
		restore()
		if err != nil {
			closeAll(slices.DeleteFunc(built, func(sys textSystem) bool { return sys == nil }))
			return nil, fmt.Errorf("building %s, n %s: %w", m.name, sizeText(len(t.keys)), err)
		}
		built[i] = sys
	}
	return slices.DeleteFunc(built, func(sys textSystem) bool { return sys == nil }), nil
}

// textLookups is a contest of batches of Get over strings.
type textLookups struct {
	*textQueries
	vals  []uint64
	found []bool
}

func newTextLookups(s *session, t *texts) *textLookups {
	return &textLookups{newTextQueries(t, s.queries), make([]uint64, s.queries), make([]bool, s.queries)}
}

func (l *textLookups) subject(sys textSystem) *subject {
	var hits int
	return &subject{
		system: sys.Name(),
		bytes:  sys.BytesPerEntry(),
		do: func(ops int) error {
			hits = sys.Get(l.q[:ops], l.vals[:ops], l.found[:ops])
			return nil
		},
		check: func(ops int) error { return l.check(ops, hits) },
	}
}

// check compares every answer with the expected one, and wipes it.
func (l *textLookups) check(ops, hits int) error {
	for i, at := range l.at[:ops] {
		if want := valueOf(uint64(at)); !l.found[i] || l.vals[i] != want {
			return fmt.Errorf("wrong answer for key %q: value %d, found %v; it should be %d, true",
				l.q[i], l.vals[i], l.found[i], want)
		}
		l.vals[i], l.found[i] = ^uint64(0), false
	}
	if hits != ops {
		return fmt.Errorf("%d hits reported where there are %d", hits, ops)
	}
	return nil
}
