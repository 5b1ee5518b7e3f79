package main

import (
	"math"
	"runtime/debug"

	"github.com/pando-index/pando"
)

var layouts = &experiment{
	name:     "layouts",
	about:    "Get and Rank with each layout, over sizes, widths of keys, and keys far apart and close together",
	per:      "one key looked up, or one rank",
	caseName: "keys",
	sizes:    []int{1 * mega, 4 * mega, 16 * mega, 64 * mega, 256 * mega},
	run:      runLayouts,
}

// The names of the rows of a layout.
const (
	namePandoImplicit   = "Pando implicit"
	namePandoCompressed = "Pando compressed"
)

// layoutsCompared are the layouts that these experiments compare. The first is
// the one that ratios are relative to.
var layoutsCompared = []struct {
	name string
	kind pando.LayoutKind
}{
	{namePandoImplicit, pando.Implicit},
	{namePandoBlocked, pando.Blocked},
	{namePandoCompressed, pando.Compressed},
}

// domain is where keys are drawn from: the numbers below end.
type domain struct {
	name string
	end  func(n int) uint64 // 0: all numbers of the width
}

var (
	uniformKeys = domain{"uniform", func(int) uint64 { return 0 }}
	keysOf40    = domain{"40 bits", func(int) uint64 { return 1 << 40 }}
	denseKeys   = domain{"dense", func(n int) uint64 { return 2 * uint64(n) }} // about every other number
)

func runLayouts(s *session) error {
	for _, n := range s.sizes {
		for _, in := range []domain{uniformKeys, denseKeys} {
			if err := layoutRows[uint32](s, n, in); err != nil {
				return err
			}
		}
		for _, in := range []domain{uniformKeys, keysOf40, denseKeys} {
			if err := layoutRows[uint64](s, n, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// newDatasetIn makes n entries whose keys are in a domain.
func newDatasetIn[W word](s *session, n int, in domain) (*dataset[W], error) {
	end := in.end(n)
	if end == 0 || end > uint64(^W(0)) {
		return newDataset[W](s, n)
	}
	s.say("making %s keys of %d bits, %s ...", sizeText(n), bitsOf[W](), in.name)
	d := &dataset[W]{keys: make([]W, n), vals: make([]W, n)}
	for i, k := range below(sortedKeys[uint64](n, s.seed), end) {
		d.keys[i], d.vals[i] = W(k), valueOf(W(k))
	}
	return d, nil
}

func layoutRows[W word](s *session, n int, in domain) error {
	debug.FreeOSMemory() // frees the memory of the previous ones
	if n > math.MaxInt32 || !s.room("keys, "+in.name, n, pairBytes[W]()+8, "use a smaller --n") {
		return nil
	}
	d, err := newDatasetIn[W](s, n, in)
	if err != nil {
		return err
	}
	label := widthName[W]() + " " + in.name
	if err := layoutGets(s, d, label+", Get"); err != nil {
		return err
	}
	return layoutRanks(s, d, label+", Rank")
}

// layoutGets compares lookups, with values. The values of a compressed tree
// are in a separate column, like those of Apart.
func layoutGets[W word](s *session, d *dataset[W], label string) error {
	var makers []maker[W]
	for _, l := range layoutsCompared {
		makers = append(makers, makePando[W](l.name, pando.Layout(l.kind)))
	}
	systems, err := buildAll(s, d, append(makers, makePandoApart[W]()))
	if err != nil {
		return err
	}
	defer closeAll(systems)
	l := newLookups(s, d)
	for _, threads := range s.threads {
		c, err := l.contest(systems, nil, threads, label, d.hits, allHits)
		if err != nil {
			return err
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// layoutRanks compares ranks, without values.
func layoutRanks[W word](s *session, d *dataset[W], label string) error {
	var sets []frozenSet[W]
	defer func() { closeAll(sets) }()
	for _, l := range layoutsCompared {
		if !s.fits(l.name, len(d.keys), pairBytes[W]()/2*1.25) {
			continue
		}
		s.say("building %s, %s ...", l.name, sizeText(len(d.keys)))
		f, err := openFrozen(l.name, d.keys, make([]struct{}, len(d.keys)), pando.Layout(l.kind))
		if err != nil {
			return err
		}
		sets = append(sets, frozenSet[W]{f})
	}
	r := newRanks(s, d)
	for _, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: label, ops: len(r.q),
			fresh: func(round int) { drawPieces(s.seed, uint64(round+1), r.q, d.between) }}
		for i, set := range sets {
			sub, err := r.batches(set.Name(), set.BytesPerEntry(), set, threads)
			if err != nil {
				return err
			}
			sub.reference = i == 0
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}
