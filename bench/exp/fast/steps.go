package fast

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/papers/fast"
)

var fastSteps = &contest.Experiment{
	Name:   "fast-steps",
	About:  "ranks among uint32 keys, each optimisation of the FAST paper on top of those before",
	Figure: "fig. 6 of the " + contest.Paper10 + ", CPU part",
	Per:    "one rank",
	Sizes:  []int{64 * contest.Kilo, 64 * contest.Mega},
	Faster: "x binary search",
	Run:    runFastSteps,
}

// Geometries: the paper's pages of 4 KiB, as far as whole lines fill them, and
// pages that suit huge pages.
const (
	smallPageLevels = 8  // 17 lines
	hugePageLevels  = 16 // 4369 lines
	binaryPage      = 10 // binary levels in 4 KiB of single keys
	narrowFlight    = 16 // concurrent queries, with vectors of 128 bits
	levelGroup      = 256
)

func runFastSteps(s *contest.Session) error {
	for _, n := range s.Sizes {
		if !s.Room("keys and six trees", n, 8*data.KeyBytesU32, "use a smaller --n") {
			continue
		}
		s.Say("making %s random keys of 32 bits ...", contest.SizeText(n))
		d := &data.Dataset[uint32]{Keys: data.SortedKeys[uint32](n, s.Seed)}
		if err := withSteps(s, d, func(steps []fastStep) error {
			for _, threads := range s.Threads {
				if err := stepContest(s, d, steps, threads); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// fastStep is a search with some of the optimizations.
type fastStep struct {
	name  string
	bytes float64 // per entry
	rank  rankFunc
	path  inside.Path // the instructions to use; inside.PlainGo: Pando's default
}

type rankFunc func(q []uint32, ranks []int)

func (f rankFunc) Rank(q []uint32, ranks []int) { f(q, ranks) }

// stepTrees are the trees that the steps search. All hold the same keys and no
// values. The first three are on small pages, like the sorted keys, so that
// the effect of pages shows.
type stepTrees struct {
	pages   *fast.PageTree[uint32]
	heap    *inside.Paged // lines as small heaps
	narrow  *inside.Paged // lines as blocks of three keys
	wide    *inside.Paged // lines in order
	huge    *inside.Paged // the same on huge pages
	regular *inside.Tree[uint32]
}

// withSteps calls body with all steps, in order.
func withSteps(s *contest.Session, d *data.Dataset[uint32], body func([]fastStep) error) error {
	s.Say("building trees, %s ...", contest.SizeText(len(d.Keys)))
	t := stepTrees{pages: fast.NewPageTree(d.Keys, binaryPage)}
	for _, b := range []struct {
		tree  **inside.Paged
		k, p  int
		pages inside.Pages
	}{
		{&t.heap, 1, smallPageLevels, inside.SmallPages},
		{&t.narrow, 2, smallPageLevels, inside.SmallPages},
		{&t.wide, 4, smallPageLevels, inside.SmallPages},
		{&t.huge, 4, hugePageLevels, inside.HugePages},
	} {
		tree, err := inside.BuildPaged(d, b.k, b.p, b.pages)
		if err != nil {
			return err
		}
		defer tree.Release()
		*b.tree = tree
	}
	regular, err := inside.BuildKeys(d)
	if err != nil {
		return err
	}
	defer regular.Release()
	t.regular = regular
	return body(t.steps(d))
}

// steps returns the searches, each with the optimizations of those before it.
func (t *stepTrees) steps(d *data.Dataset[uint32]) []fastStep {
	out := []fastStep{
		{name: "binary search", bytes: data.KeyBytesU32, rank: func(q []uint32, ranks []int) { fast.RankBinary(d.Keys, q, ranks) }},
		{name: "+ pages of 4 KiB", rank: t.pages.Rank},
		{name: "+ lines", bytes: fastBytes(t.heap), rank: func(q []uint32, ranks []int) { fast.RankLines(t.heap, q, ranks) }},
	}
	for _, flight := range []int{1, narrowFlight} {
		for _, how := range []fast.Narrow{fast.ByTable, fast.ByCount} {
			out = append(out, t.narrowStep(how, flight))
		}
		for _, path := range vectorPaths() {
			out = append(out, t.wideStep(path, flight))
		}
	}
	return append(out,
		fastStep{name: "the same, level by level in groups of 256", bytes: fastBytes(t.wide),
			rank: func(q []uint32, ranks []int) { fast.RankLevels(t.wide, levelGroup, q, ranks) }},
		fastStep{name: "+ huge pages", bytes: fastBytes(t.huge), rank: t.huge.Rank},
		fastStep{name: ours.NameImplicit, bytes: inside.TreeBytes(t.regular), rank: t.regular.Rank})
}

func fastBytes(t *inside.Paged) float64 {
	st := t.Stats()
	return float64(st.InnerBytes+st.LeafBytes) / float64(max(1, t.Len()))
}

// underWay returns the suffix of a step's name.
func underWay(flight int) string {
	if flight == 1 {
		return ""
	}
	return fmt.Sprintf(", %d queries under way", flight)
}

func (t *stepTrees) narrowStep(how fast.Narrow, flight int) fastStep {
	return fastStep{name: fmt.Sprintf("+ vectors of 128 bits, by %v%s", how, underWay(flight)), bytes: fastBytes(t.narrow),
		rank: func(q []uint32, ranks []int) { fast.RankSSE(t.narrow, how, flight, q, ranks) }}
}

// wideStep compares whole lines. With several concurrent queries it is Pando's
// own search; with one, it is the same search, called for each query.
func (t *stepTrees) wideStep(path inside.Path, flight int) fastStep {
	f := fastStep{name: fmt.Sprintf("+ lines at once, %v", path), bytes: fastBytes(t.wide), path: path}
	f.rank = func(q []uint32, ranks []int) {
		for i := range q {
			t.wide.Rank(q[i:i+1], ranks[i:i+1])
		}
	}
	if flight > 1 {
		f.name, f.rank = f.name+", many queries under way", t.wide.Rank
	}
	return f
}

// vectorPaths returns the instruction sets of this machine that compare lines.
func vectorPaths() []inside.Path {
	return slices.DeleteFunc(inside.Paths(), func(p inside.Path) bool { return p == inside.PlainGo })
}

func stepContest(s *contest.Session, d *data.Dataset[uint32], steps []fastStep, threads int) error {
	r := work.NewRanks(s, d)
	c := &contest.Contest{N: len(d.Keys), Threads: threads, Ops: len(r.Q),
		Fresh: func(round int) { data.DrawPieces(s.Seed, uint64(round+1), r.Q, d.Between) }}
	for i, step := range steps {
		sub, err := r.Batches(step.name, step.bytes, step.rank, threads)
		if err != nil {
			return err
		}
		sub.Reference = i == 0
		if step.path != inside.PlainGo {
			sub.Do = inside.OnPath(step.path, sub.Do)
		}
		c.Subjects = append(c.Subjects, sub)
	}
	return s.Compete(c)
}
