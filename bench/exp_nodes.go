package main

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/papers/hbplus"
)

// The experiments of this file vary parameters that Pando's public API does
// not have: they build its tree themselves.

var nodeSearch = &experiment{
	name:     "node-search",
	about:    "ranks with nodes searched sequentially, linearly and hierarchically, on each instruction set",
	figure:   "fig. 8 of the " + paper16,
	per:      "one rank",
	caseName: "keys",
	sizes:    usualSizes,
	run:      runNodeSearch,
}

var pipelineLength = &experiment{
	name:     "pipeline-length",
	about:    "a batch of Get with 1 to 128 queries between two steps of one query",
	figure:   "fig. 20 of the " + paper16,
	per:      "one key looked up",
	caseName: "keys",
	sizes:    usualSizes,
	extra:    []extraColumn{{colInFlight, whole}, {colLatency, whole}},
	run:      runPipelineLength,
}

var fanout = &experiment{
	name:     "fanout",
	about:    "nodes with one child more than keys (9, 17) against as many (8, 16), which suit a GPU",
	figure:   "fig. 19 of the " + paper16,
	per:      "one key looked up",
	caseName: "keys",
	sizes:    usualSizes,
	extra:    []extraColumn{{colLevels, whole}},
	run:      runFanout,
}

// colLevels is the number of levels of a tree, leaves included.
const colLevels = "levels"

// The extra columns of pipeline-length.
const (
	colInFlight = "in flight"
	colLatency  = "latency ns"
)

// buildTree makes a tree as Frozen would, except for cfg's fanout.
func buildTree[W word](d *dataset[W], cfg implicit.Config) (*implicit.Tree[W], error) {
	cfg.Leaves, cfg.ValSize, cfg.Pages = implicit.Pairs, bitsOf[W]()/8, arena.HugeAll
	return implicit.Build(layout.Source[W]{
		Len:   len(d.keys),
		Codes: d.keys,
		Vals:  unsafe.Pointer(unsafe.SliceData(d.vals)),
	}, cfg)
}

// treeBytes returns the bytes per entry of the tree.
func treeBytes[W word](t *implicit.Tree[W]) float64 {
	st := t.Stats()
	return float64(st.InnerBytes+st.LeafBytes+st.ValueBytes) / float64(t.Len())
}

// bothWidths runs an experiment's body for 64-bit and for 32-bit keys.
func bothWidths(s *session, wide func(*dataset[uint64]) error, narrow func(*dataset[uint32]) error) error {
	if err := forEachSize(s, wide); err != nil {
		return err
	}
	return forEachSize(s, narrow)
}

func widthName[W word]() string { return fmt.Sprintf("uint%d", bitsOf[W]()) }

// treeGets returns a subject that calls GetPairs on a tree. set sets the
// parameter before each run; it may be nil.
func treeGets[W word](l *lookups[W], t *implicit.Tree[W], name string, threads int, set func()) *subject {
	var hits int
	pairs := implicit.Paired[W]{Tree: t}
	return &subject{
		system: name,
		bytes:  treeBytes(t),
		do: func(ops int) error {
			if set != nil {
				set()
			}
			hits = spread(threads, ops, func(lo, hi int) int {
				return pairs.GetPairs(l.q[lo:hi], l.vals[lo:hi], l.found[lo:hi])
			})
			return nil
		},
		check: func(ops int) error { return l.check(ops, hits) },
	}
}

func runFanout(s *session) error {
	return bothWidths(s,
		func(d *dataset[uint64]) error { return fanoutContests(s, d, 9, 8) },
		func(d *dataset[uint32]) error { return fanoutContests(s, d, 17, 16) })
}

func fanoutContests[W word](s *session, d *dataset[W], fanouts ...int) error {
	l := newLookups(s, d)
	trees := make([]*implicit.Tree[W], len(fanouts))
	for i, f := range fanouts {
		t, err := buildTree(d, implicit.Config{Fanout: f})
		if err != nil {
			return err
		}
		defer t.Release()
		trees[i] = t
	}
	for _, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: widthName[W](), ops: len(l.q),
			fresh: func(round int) { l.fresh(round, d.hits, allHits) }}
		for i, t := range trees {
			sub := treeGets(l, t, fmt.Sprintf("Pando, fanout %d", fanouts[i]), threads, nil)
			sub.reference = i == 0
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
		for i, r := range s.latest(c) {
			r.set(colLevels, float64(trees[i].Levels+1))
		}
	}
	return nil
}

// distances returns those tried by pipeline-length: powers of two, and Pando's
// own.
func distances() []int {
	out := []int{implicit.DefaultDistance}
	for d := 1; d <= 128; d *= 2 {
		out = append(out, d)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func runPipelineLength(s *session) error {
	return bothWidths(s,
		func(d *dataset[uint64]) error { return pipelineContests(s, d) },
		func(d *dataset[uint32]) error { return pipelineContests(s, d) })
}

func pipelineContests[W word](s *session, d *dataset[W]) error {
	t, err := buildTree(d, implicit.Config{})
	if err != nil {
		return err
	}
	defer t.Release()
	l := newLookups(s, d)
	for _, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: widthName[W](), ops: len(l.q),
			fresh: func(round int) { l.fresh(round, d.hits, allHits) }}
		for _, dist := range distances() {
			sub := treeGets(l, t, fmt.Sprintf("Pando, distance %d", dist), threads, func() { t.Distance = uint64(dist) })
			sub.reference = dist == implicit.DefaultDistance
			c.subjects = append(c.subjects, sub)
		}
		before := len(s.rows)
		if err := s.compete(c); err != nil {
			return err
		}
		for i, r := range s.rows[before:] {
			fillLatency(r, distances()[i]*(t.Levels-t.Top+1))
		}
	}
	return nil
}

// fillLatency fills in how many queries a thread has in flight at a time, and
// for how long each: by Little's law, that number times the time per query.
func fillLatency(r *row, inFlight int) {
	r.set(colInFlight, float64(inFlight))
	r.set(colLatency, float64(inFlight)*r.Median*float64(r.Threads))
}

func runNodeSearch(s *session) error {
	return bothWidths(s,
		func(d *dataset[uint64]) error { return nodeContests(s, d) },
		func(d *dataset[uint32]) error { return nodeContests(s, d) })
}

// way is a path and a method, or what the paper calls no software pipelining.
type way struct {
	path   simd.Path
	method hbplus.Method
	alone  bool // one query per call
}

func (w way) String() string {
	if w.alone {
		return fmt.Sprintf("%v %v, one query at a time", w.path, w.method)
	}
	return fmt.Sprintf("%v %v", w.path, w.method)
}

// ways returns what this machine can do, Pando's default first. Sequential
// search uses no vectors: it is listed once among the assembly paths.
func ways() []way {
	paths := slices.Clone(simd.Paths())
	slices.Reverse(paths)
	out := []way{{path: paths[0], method: hbplus.Linear}}
	for i, p := range paths {
		for _, m := range hbplus.Methods() {
			w := way{path: p, method: m}
			again := m == hbplus.Sequential && i > 0 && p != simd.Go
			if w != out[0] && !again {
				out = append(out, w)
			}
		}
	}
	return append(out, way{paths[0], hbplus.Sequential, true})
}

func nodeContests[W word](s *session, d *dataset[W]) error {
	t, err := buildTree(d, implicit.Config{})
	if err != nil {
		return err
	}
	defer t.Release()
	r := newRanks(s, d)
	for _, threads := range s.threads {
		c := &contest{n: len(d.keys), threads: threads, label: widthName[W](), ops: len(r.q),
			fresh: func(round int) { d.between(s.roundRand(round), r.q) }}
		for i, w := range ways() {
			sub, err := r.batches("Pando, "+w.String(), treeBytes(t), treeWay[W]{t, w}, threads)
			if err != nil {
				return err
			}
			sub.reference = i == 0
			sub.do = onPath(w.path, sub.do)
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// onPath makes all threads of a run use a path.
func onPath(p simd.Path, do func(int) error) func(int) error {
	return func(ops int) error {
		defer simd.Use(p)()
		return do(ops)
	}
}

// treeWay ranks on a tree in one way.
type treeWay[W word] struct {
	t *implicit.Tree[W]
	way
}

func (t treeWay[W]) Rank(q []W, ranks []int) {
	if !t.alone {
		hbplus.RankBy(&t.t.Tree, t.method, q, ranks)
		return
	}
	for i := range q {
		hbplus.RankBy(&t.t.Tree, t.method, q[i:i+1], ranks[i:i+1])
	}
}
