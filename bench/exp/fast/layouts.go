package fast

import (
	"math"
	"runtime/debug"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var layouts = &contest.Experiment{
	Name:     "layouts",
	About:    "Get and Rank with each layout, over sizes, widths of keys, and keys far apart and close together",
	Per:      "one key looked up, or one rank",
	CaseName: "keys",
	Sizes:    []int{1 * contest.Mega, 4 * contest.Mega, 16 * contest.Mega, 64 * contest.Mega, 256 * contest.Mega},
	Run:      runLayouts,
}

// layoutsCompared are the layouts that these experiments compare. The first is
// the one that ratios are relative to.
var layoutsCompared = []struct {
	name string
	kind pando.LayoutKind
}{
	{ours.NameImplicit, pando.Implicit},
	{ours.NameBlocked, pando.Blocked},
	{ours.NameCompressed, pando.Compressed},
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

func runLayouts(s *contest.Session) error {
	for _, n := range s.Sizes {
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
func newDatasetIn[W data.Word](s *contest.Session, n int, in domain) (*data.Dataset[W], error) {
	end := in.end(n)
	if end == 0 || end > uint64(^W(0)) {
		return data.NewDataset[W](s, n)
	}
	s.Say("making %s keys of %d bits, %s ...", contest.SizeText(n), data.BitsOf[W](), in.name)
	d := &data.Dataset[W]{Keys: make([]W, n), Vals: make([]W, n)}
	for i, k := range data.Below(data.SortedKeys[uint64](n, s.Seed), end) {
		d.Keys[i], d.Vals[i] = W(k), data.ValueOf(W(k))
	}
	return d, nil
}

func layoutRows[W data.Word](s *contest.Session, n int, in domain) error {
	debug.FreeOSMemory() // frees the memory of the previous ones
	if n > math.MaxInt32 || !s.Room("keys, "+in.name, n, data.PairBytes[W]()+8, "use a smaller --n") {
		return nil
	}
	d, err := newDatasetIn[W](s, n, in)
	if err != nil {
		return err
	}
	label := data.WidthName[W]() + " " + in.name
	if err := layoutGets(s, d, label+", Get"); err != nil {
		return err
	}
	return layoutRanks(s, d, label+", Rank")
}

// layoutGets compares lookups, with values. The values of a compressed tree
// are in a separate column, like those of Apart.
func layoutGets[W data.Word](s *contest.Session, d *data.Dataset[W], label string) error {
	var makers []peers.Maker[W]
	for _, l := range layoutsCompared {
		makers = append(makers, ours.Make[W](l.name, pando.Layout(l.kind)))
	}
	systems, err := peers.BuildAll(s, d, append(makers, ours.MakeApart[W]()))
	if err != nil {
		return err
	}
	defer peers.CloseAll(systems)
	l := work.NewLookups(s, d)
	for _, threads := range s.Threads {
		c, err := l.Contest(systems, nil, threads, label, d.Hits, work.AllHits)
		if err != nil {
			return err
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// layoutRanks compares ranks, without values.
func layoutRanks[W data.Word](s *contest.Session, d *data.Dataset[W], label string) error {
	var sets []ours.FrozenSet[W]
	defer func() { peers.CloseAll(sets) }()
	for _, l := range layoutsCompared {
		if !s.Fits(l.name, len(d.Keys), data.PairBytes[W]()/2*1.25) {
			continue
		}
		s.Say("building %s, %s ...", l.name, contest.SizeText(len(d.Keys)))
		f, err := ours.OpenFrozen(l.name, d.Keys, make([]struct{}, len(d.Keys)), pando.Layout(l.kind))
		if err != nil {
			return err
		}
		sets = append(sets, ours.FrozenSet[W]{Frozen: f})
	}
	r := work.NewRanks(s, d)
	for _, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: label, Ops: len(r.Q),
			Fresh: func(round int) { data.DrawPieces(s.Seed, uint64(round+1), r.Q, d.Between) }}
		for i, set := range sets {
			sub, err := r.Batches(set.Name(), set.BytesPerEntry(), set, threads)
			if err != nil {
				return err
			}
			sub.Reference = i == 0
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
