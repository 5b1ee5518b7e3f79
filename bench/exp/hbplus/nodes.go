package hbplus

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/papers/hbplus"
)

// The experiments of this file vary parameters that Pando's public API does
// not have: they build its tree themselves.

var nodeSearch = &contest.Experiment{
	Name:     "node-search",
	About:    "ranks with nodes searched sequentially, linearly and hierarchically, on each instruction set",
	Figure:   "fig. 8 of the " + contest.Paper16,
	Per:      "one rank",
	CaseName: "keys",
	Sizes:    contest.UsualSizes,
	Run:      runNodeSearch,
}

var pipelineLength = &contest.Experiment{
	Name:     "pipeline-length",
	About:    "a batch of Get with 1 to 128 queries between two steps of one query",
	Figure:   "fig. 20 of the " + contest.Paper16,
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: colInFlight, Format: contest.Whole}, {Name: colLatency, Format: contest.Whole}},
	Run:      runPipelineLength,
}

var fanout = &contest.Experiment{
	Name:     "fanout",
	About:    "nodes with one child more than keys (9, 17) against as many (8, 16), which suit a GPU",
	Figure:   "fig. 19 of the " + contest.Paper16,
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: colLevels, Format: contest.Whole}},
	Run:      runFanout,
}

// colLevels is the number of levels of a tree, leaves included.
const colLevels = "levels"

// The extra columns of pipeline-length.
const (
	colInFlight = "in flight"
	colLatency  = "latency ns"
)

// treeGets returns a subject that calls GetPairs on a tree. set sets the
// parameter before each run; it may be nil.
func treeGets[W data.Word](l *work.Lookups[W], t *inside.Tree[W], name string, threads int, set func()) *contest.Subject {
	var hits int
	return &contest.Subject{
		System: name,
		Bytes:  inside.TreeBytes(t),
		Do: func(ops int) error {
			if set != nil {
				set()
			}
			hits = contest.Spread(threads, ops, func(lo, hi int) int {
				return inside.GetPairs(t, l.Q[lo:hi], l.Vals[lo:hi], l.Found[lo:hi])
			})
			return nil
		},
		Check: func(ops int) error { return l.Check(ops, hits) },
	}
}

func runFanout(s *contest.Session) error {
	return data.BothWidths(s,
		func(d *data.Dataset[uint64]) error { return fanoutContests(s, d, 9, 8) },
		func(d *data.Dataset[uint32]) error { return fanoutContests(s, d, 17, 16) })
}

func fanoutContests[W data.Word](s *contest.Session, d *data.Dataset[W], fanouts ...int) error {
	l := work.NewLookups(s, d)
	trees := make([]*inside.Tree[W], len(fanouts))
	for i, f := range fanouts {
		t, err := inside.BuildTree(d, f, 0)
		if err != nil {
			return err
		}
		defer t.Release()
		trees[i] = t
	}
	for _, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: data.WidthName[W](), Ops: len(l.Q),
			Fresh: func(round int) { l.Fresh(round, d.Hits, work.AllHits) }}
		for i, t := range trees {
			sub := treeGets(l, t, fmt.Sprintf("Pando, fanout %d", fanouts[i]), threads, nil)
			sub.Reference = i == 0
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
		for i, r := range s.Latest(c) {
			r.Set(colLevels, float64(trees[i].Levels+1))
		}
	}
	return nil
}

// distances returns those tried by pipeline-length: powers of two, and Pando's
// own.
func distances() []int {
	out := []int{inside.Distance}
	for d := 1; d <= 128; d *= 2 {
		out = append(out, d)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func runPipelineLength(s *contest.Session) error {
	return data.BothWidths(s,
		func(d *data.Dataset[uint64]) error { return pipelineContests(s, d) },
		func(d *data.Dataset[uint32]) error { return pipelineContests(s, d) })
}

func pipelineContests[W data.Word](s *contest.Session, d *data.Dataset[W]) error {
	t, err := inside.BuildTree(d, 0, 0)
	if err != nil {
		return err
	}
	defer t.Release()
	l := work.NewLookups(s, d)
	for _, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: data.WidthName[W](), Ops: len(l.Q),
			Fresh: func(round int) { l.Fresh(round, d.Hits, work.AllHits) }}
		for _, dist := range distances() {
			sub := treeGets(l, t, fmt.Sprintf("Pando, distance %d", dist), threads, func() { t.Distance = uint64(dist) })
			sub.Reference = dist == inside.Distance
			c.Subjects = append(c.Subjects, sub)
		}
		before := len(s.Rows)
		if err := s.Compete(c); err != nil {
			return err
		}
		for i, r := range s.Rows[before:] {
			fillLatency(r, distances()[i]*(t.Levels-t.Top+1))
		}
	}
	return nil
}

// fillLatency fills in how many queries a thread has in flight at a time, and
// for how long each: by Little's law, that number times the time per query.
func fillLatency(r *contest.Row, inFlight int) {
	r.Set(colInFlight, float64(inFlight))
	r.Set(colLatency, float64(inFlight)*r.Median*float64(r.Threads))
}

func runNodeSearch(s *contest.Session) error {
	return data.BothWidths(s,
		func(d *data.Dataset[uint64]) error { return nodeContests(s, d) },
		func(d *data.Dataset[uint32]) error { return nodeContests(s, d) })
}

// way is a path and a method, or what the paper calls no software pipelining.
type way struct {
	path   inside.Path
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
	paths := inside.Paths()
	slices.Reverse(paths)
	out := []way{{path: paths[0], method: hbplus.Linear}}
	for i, p := range paths {
		for _, m := range hbplus.Methods() {
			w := way{path: p, method: m}
			again := m == hbplus.Sequential && i > 0 && p != inside.PlainGo
			if w != out[0] && !again {
				out = append(out, w)
			}
		}
	}
	return append(out, way{paths[0], hbplus.Sequential, true})
}

func nodeContests[W data.Word](s *contest.Session, d *data.Dataset[W]) error {
	t, err := inside.BuildTree(d, 0, 0)
	if err != nil {
		return err
	}
	defer t.Release()
	r := work.NewRanks(s, d)
	for _, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: data.WidthName[W](), Ops: len(r.Q),
			Fresh: func(round int) { d.Between(data.RoundRand(s, round), r.Q) }}
		for i, w := range ways() {
			sub, err := r.Batches("Pando, "+w.String(), inside.TreeBytes(t), treeWay[W]{t, w}, threads)
			if err != nil {
				return err
			}
			sub.Reference = i == 0
			sub.Do = inside.OnPath(w.path, sub.Do)
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// treeWay ranks on a tree in one way.
type treeWay[W data.Word] struct {
	t *inside.Tree[W]
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
