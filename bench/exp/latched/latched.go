package latched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/papers/thesis"
)

// The experiments of this file are the GPU's half of the thesis (exp_dict.go): its
// latched trees, filled and searched by one launch, keys and answers in the GPU's
// memory.

var gpuDictInsert = &contest.Experiment{
	Name:     "gpu-dict-insert",
	About:    "a latched tree on the GPU filled from empty by one launch: shuffled, ascending, Gaussian, mesh-like; std::map beside",
	Figure:   "table 5.4 and fig. 5.3 and 5.4 of the " + thesis21,
	Per:      "one key set",
	CaseName: "keys",
	Sizes:    dictSizes,
	Extra:    contest.GigaColumns,
	Run:      func(s *contest.Session) error { return runLatched(s, true) },
}

var gpuDictSearch = &contest.Experiment{
	Name:     "gpu-dict-search",
	About:    "lookups of all keys in a latched tree on the GPU, in the order of their insertion; std::map beside",
	Figure:   "tables 5.2 and 5.3 and fig. 5.2 of the " + thesis21,
	Per:      "one key looked up",
	CaseName: "keys",
	Sizes:    dictSizes,
	Extra:    contest.GigaColumns,
	Run:      func(s *contest.Session) error { return runLatched(s, false) },
}

var gpuLatchedHot = &contest.Experiment{
	Name:     "gpu-latched-hot",
	About:    "a latched tree on the GPU: values set in fewer and fewer of its leaves, down to one",
	Per:      "one value set",
	CaseName: "leaves",
	Sizes:    []int{contest.Mega, 64 * contest.Mega},
	Queries:  contest.Mega,
	Extra:    contest.GigaColumns,
	Run:      runLatchedHot,
}

// mesh returns keys as those of a numerical mesh: neighbours in two dimensions,
// row by row, so that runs of ascending keys begin again and again. The thesis
// names such keys, and measures none.
func mesh(_ *rand.Rand, n int) []uint64 {
	const side = 64
	keys := make([]uint64, 0, n)
	for row := range side {
		for k := row; k < n; k += side {
			keys = append(keys, uint64(k))
		}
	}
	return keys
}

// latchedShape is one of the trees.
type latchedShape struct {
	name        string
	bits, order int
	how         uint32
	tile        int // lanes; 0 for 16
}

// The options of the trees: quick ones copy the root once a block, and read
// inner nodes once.
const (
	linked = thesis.BlinkLinks
	peeks  = thesis.BlinkLinks | thesis.BlinkPeeks
	quick  = thesis.BlinkLinks | thesis.BlinkPeeks | thesis.BlinkTops
)

var latchedShapes = []latchedShape{
	{"B-link, 64 bits, nodes of 16", 64, 16, linked, 0},
	{"B-link, 64 bits, nodes of 32", 64, 32, linked, 0},
	{"B-link, 64 bits, nodes of 16, quick", 64, 16, quick, 0},
	{"B+, 64 bits, nodes of 16", 64, 16, 0, 0},
	{"B-link, 32 bits, nodes of 16", 32, 16, linked, 0},
	{"B-link, 32 bits, nodes of 32", 32, 32, linked, 0},
	{"B-link, 32 bits, nodes of 16, quick", 32, 16, quick, 0},
	{"B+, 32 bits, nodes of 16", 32, 16, 0, 0},
}

// latchedWays are ways to go down a tree, one after the other, for
// gpu-latched-insert.
var latchedWays = []latchedShape{
	latchedShapes[0],
	{"B-link, 64 bits, nodes of 16, peeks", 64, 16, peeks, 0},
	{"B-link, 64 bits, nodes of 16, quick", 64, 16, quick, 0},
	{"B-link, 64 bits, nodes of 16, quick, tiles of 8", 64, 16, quick, 8},
	latchedShapes[1],
	{"B-link, 64 bits, nodes of 32, quick", 64, 32, quick, 0},
	latchedShapes[4],
	{"B-link, 32 bits, nodes of 16, quick", 32, 16, quick, 0},
	{"B-link, 32 bits, nodes of 16, quick, tiles of 8", 32, 16, quick, 8},
	{"B-link, 32 bits, nodes of 32, quick", 32, 32, quick, 0},
}

// latchedTree is a latched tree with its keys, values and answers on the GPU.
type latchedTree[W data.Word] struct {
	g          *rig.Rig
	shape      latchedShape
	tree       *thesis.Blink[W]
	keys, want []W
	at         struct{ keys, vals, fresh, out rig.Ptr }
}

// latchedNodes returns how many nodes n inserts take at most, one at a time: a
// split leaves half a node behind.
func latchedNodes(n, order int) int { return n*2/order*5/4 + 64 }

func newLatchedTree[W data.Word](g *rig.Rig, shape latchedShape, d *data.Dataset[uint64]) (*latchedTree[W], error) {
	l := &latchedTree[W]{g: g, shape: shape, keys: make([]W, len(d.Keys)), want: make([]W, len(d.Keys))}
	contest.ForPieces(len(d.Keys), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			l.keys[i], l.want[i] = W(d.Keys[i]), data.ValueOf(W(d.Keys[i]))
		}
	})
	set, err := g.Latched()
	if err != nil {
		return nil, err
	}
	var errs error
	if l.tree, err = thesis.NewBlinkOf[W](g.Dev, set, shape.order, latchedNodes(len(d.Keys), shape.order)); err != nil {
		return nil, err
	}
	l.tree.Tree.How, l.tree.Shape.Tile = shape.how, shape.tile
	for _, p := range []*rig.Ptr{&l.at.vals, &l.at.fresh} {
		*p, err = rig.Put(g, l.want)
		errs = errors.Join(errs, err)
	}
	l.at.keys, err = rig.Put(g, l.keys)
	errs = errors.Join(errs, err)
	l.at.out, err = g.Alloc(len(l.keys))
	if errs = errors.Join(errs, err); errs != nil {
		return nil, errors.Join(errs, l.tree.Close())
	}
	return l, nil
}

func (l *latchedTree[W]) batch(get bool, n int) error {
	return l.tree.Kernels.Batch(l.g.Stream, &l.g.BlinkParams, &l.tree.Tree, l.tree.Shape, get, 0, l.at.keys, l.at.vals, n, l.at.out)
}

// clear makes the tree empty, and sets the values to those of the keys.
func (l *latchedTree[W]) clear() error {
	_, err := l.tree.Kernels.Build(l.g.Stream, &l.g.BlinkParams, &l.tree.Tree, l.tree.Shape, l.at.keys, l.at.vals, 0, l.shape.order)
	return errors.Join(err, l.refresh())
}

func (l *latchedTree[W]) refresh() error {
	return l.g.Stream.CopyDevice(l.at.vals, l.at.fresh, len(l.keys)*l.shape.bits/8)
}

// check looks at the answers of lookups.
func (l *latchedTree[W]) check(ops int) error {
	return rig.ReadBack(l.g, l.at.vals, ops, func(first int, part []W) error {
		for i, v := range part {
			if v != l.want[first+i] {
				return fmt.Errorf("key %d has the value %d, not %d", l.keys[first+i], v, l.want[first+i])
			}
		}
		return nil
	})
}

// latchedInsert fills the tree from empty. The check looks every key up.
func latchedInsert[W data.Word](l *latchedTree[W]) (*contest.Subject, error) {
	sub := l.g.Subject(l.shape.name, 0, func(n int) error { return l.batch(false, n) }, func(int) error { return l.clear() },
		func(n int) error { return errors.Join(l.batch(true, n), l.check(n)) })
	sub.Whole = true
	return sub, nil
}

// latchedSearch fills the tree and looks all keys up.
func latchedSearch[W data.Word](l *latchedTree[W]) (*contest.Subject, error) {
	if err := errors.Join(l.clear(), l.batch(false, len(l.keys)), l.g.Stream.Synchronize()); err != nil {
		return nil, err
	}
	nodes, err := l.tree.Nodes()
	if err != nil {
		return nil, err
	}
	bytes := float64(nodes*l.tree.Shape.NodeBytes()) / float64(len(l.keys))
	sub := l.g.Subject(l.shape.name, bytes, func(n int) error { return l.batch(true, n) },
		func(n int) error { return l.g.Stream.Fill(l.at.vals, 0, n*l.shape.bits/8) }, l.check)
	sub.Whole = true
	return sub, nil
}

// latchedSubject returns the work of a shape, and its tree.
func latchedSubject[W data.Word](g *rig.Rig, shape latchedShape, d *data.Dataset[uint64], work func(*latchedTree[W]) (*contest.Subject, error)) (*contest.Subject, func() error, error) {
	l, err := newLatchedTree[W](g, shape, d)
	if err != nil {
		return nil, nil, err
	}
	sub, err := work(l)
	return sub, l.tree.Close, err
}

// runLatched measures every shape on every sequence.
func runLatched(s *contest.Session, insert bool) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		stores := slices.DeleteFunc(peers.CPPStores(s), func(m peers.StoreMaker) bool { return m.Name != "std::map" })
		return eachOf(s, append(slices.Clip(sequences), sequence{"mesh-like", mesh}), func(name string, d *data.Dataset[uint64]) error {
			return g.Clear(len(d.Keys), latchedContest(g, name, d, insert, stores))
		})
	})
	s.SetGigas()
	return err
}

// addLatched adds a latched tree of each shape to a contest, the first as what the
// others are compared with. done gives back what was made, also after an error.
func addLatched(c *contest.Contest, shapes []latchedShape, subjectOf func(latchedShape) (*contest.Subject, func() error, error)) (done func() error, err error) {
	var all []func() error
	done = func() (err error) {
		for _, d := range slices.Backward(all) {
			err = errors.Join(err, d())
		}
		return err
	}
	for _, shape := range shapes {
		sub, d, err := subjectOf(shape)
		if d != nil {
			all = append(all, d)
		}
		if err != nil {
			return done, err
		}
		c.Subjects = append(c.Subjects, sub)
	}
	c.Subjects[0].Reference = true
	return done, nil
}

func latchedContest(g *rig.Rig, name string, d *data.Dataset[uint64], insert bool, yardsticks []peers.StoreMaker) (err error) {
	c := &contest.Contest{N: len(d.Keys), Threads: 1, Label: name, Ops: len(d.Keys)}
	done, err := addLatched(c, latchedShapes, func(shape latchedShape) (*contest.Subject, func() error, error) {
		switch {
		case shape.bits == 32 && insert:
			return latchedSubject(g, shape, d, latchedInsert[uint32])
		case shape.bits == 32:
			return latchedSubject(g, shape, d, latchedSearch[uint32])
		case insert:
			return latchedSubject(g, shape, d, latchedInsert[uint64])
		}
		return latchedSubject(g, shape, d, latchedSearch[uint64])
	})
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return err
	}
	if !insert {
		return yardstickSearch(g.S, c, d, yardsticks)
	}
	for _, m := range yardsticks {
		if g.S.Fits(m.Name, len(d.Keys), 2*m.Peak) {
			c.Subjects = append(c.Subjects, work.Fills(g.S, d, m, m.Name, false, peers.Store.Set))
		}
	}
	return g.S.Compete(c)
}

// yardstickSearch runs a contest of lookups with maps of the CPU beside.
func yardstickSearch(s *contest.Session, c *contest.Contest, d *data.Dataset[uint64], makers []peers.StoreMaker) error {
	stores, err := peers.BuildStores(s, len(d.Keys), makers, work.Growth{Dataset: d}.Grow)
	if err != nil {
		return err
	}
	defer peers.CloseStores(stores)
	l := work.NewLookups(s, d)
	l.Q, l.Vals = d.Keys, make([]uint64, len(d.Keys))
	l.Found, l.Want = make([]bool, len(d.Keys)), slices.Repeat([]bool{true}, len(d.Keys))
	for _, st := range stores {
		c.Subjects = append(c.Subjects, l.Ask(st, st.Name(), 0, false))
	}
	return s.Compete(c)
}

// runLatchedHot sets values of keys that fall on some of the leaves only.
func runLatchedHot(s *contest.Session) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			if err := g.Clear(n, latchedHot(g, n)); err != nil {
				return err
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

// hotLeaves are numbers of leaves that the operations of a launch fall on.
var hotLeaves = []int{8 * contest.Mega, contest.Mega, 64 * contest.Kilo, contest.Kilo, 32, 1}

func latchedHot(g *rig.Rig, n int) (err error) {
	const order = 16
	all := &data.Dataset[uint64]{Keys: countUp(n)}
	l, err := newLatchedTree[uint64](g, latchedShapes[0], all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.tree.Close()) }()
	_, err = l.tree.Kernels.Build(g.Stream, &g.BlinkParams, &l.tree.Tree, l.tree.Shape, l.at.keys, l.at.fresh, n, order/2)
	if err = errors.Join(err, g.Stream.Synchronize()); err != nil {
		return err
	}
	rng := data.NewRand(g.S.Seed, data.StreamQueries)
	for _, leaves := range hotLeaves {
		keys := min(n, leaves*order/2)
		if leaves > 1 && leaves*order/2 > n {
			continue // more leaves than there are
		}
		ops := min(g.S.Queries, n)
		for i := range ops {
			l.keys[i] = uint64(rng.IntN(keys))
			l.want[i] = data.ValueOf(l.keys[i])
		}
		if err := errors.Join(g.Stream.CopyIn(l.at.keys, inside.Bytes(l.keys[:ops])), g.Stream.CopyIn(l.at.fresh, inside.Bytes(l.want[:ops])), l.refresh(), g.Stream.Synchronize()); err != nil {
			return err
		}
		sub := g.Subject(l.shape.name, 0, func(ops int) error { return l.batch(false, ops) }, func(int) error { return l.refresh() },
			func(ops int) error { return l.check(ops) })
		sub.Reference = true
		c := &contest.Contest{N: n, Threads: 1, Label: fmt.Sprint(leaves), Ops: ops, Subjects: []*contest.Subject{sub}}
		if err := g.S.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
