package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/papers/thesis"
)

// The experiments of this file are the GPU's half of the thesis (exp_dict.go): its
// latched trees, filled and searched by one launch, keys and answers in the GPU's
// memory.

var gpuDictInsert = &experiment{
	name:     "gpu-dict-insert",
	about:    "a latched tree on the GPU filled from empty by one launch: shuffled, ascending, Gaussian, mesh-like; std::map beside",
	figure:   "table 5.4 and fig. 5.3 and 5.4 of the " + thesis21,
	per:      "one key set",
	caseName: "keys",
	sizes:    dictSizes,
	extra:    gigaColumns,
	run:      func(s *session) error { return runLatched(s, true) },
}

var gpuDictSearch = &experiment{
	name:     "gpu-dict-search",
	about:    "lookups of all keys in a latched tree on the GPU, in the order of their insertion; std::map beside",
	figure:   "tables 5.2 and 5.3 and fig. 5.2 of the " + thesis21,
	per:      "one key looked up",
	caseName: "keys",
	sizes:    dictSizes,
	extra:    gigaColumns,
	run:      func(s *session) error { return runLatched(s, false) },
}

var gpuLatchedHot = &experiment{
	name:     "gpu-latched-hot",
	about:    "a latched tree on the GPU: values set in fewer and fewer of its leaves, down to one",
	per:      "one value set",
	caseName: "leaves",
	sizes:    []int{mega, 64 * mega},
	queries:  mega,
	extra:    gigaColumns,
	run:      runLatchedHot,
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
type latchedTree[W word] struct {
	g          *gpuRig
	shape      latchedShape
	tree       *thesis.Blink[W]
	keys, want []W
	at         struct{ keys, vals, fresh, out device.Ptr }
}

// latchedNodes returns how many nodes n inserts take at most, one at a time: a
// split leaves half a node behind.
func latchedNodes(n, order int) int { return n*2/order*5/4 + 64 }

func newLatchedTree[W word](g *gpuRig, shape latchedShape, d *dataset[uint64]) (*latchedTree[W], error) {
	l := &latchedTree[W]{g: g, shape: shape, keys: make([]W, len(d.keys)), want: make([]W, len(d.keys))}
	forPieces(len(d.keys), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			l.keys[i], l.want[i] = W(d.keys[i]), valueOf(W(d.keys[i]))
		}
	})
	set, err := g.latched()
	if err != nil {
		return nil, err
	}
	var errs error
	if l.tree, err = thesis.NewBlinkOf[W](g.dev, set, shape.order, latchedNodes(len(d.keys), shape.order)); err != nil {
		return nil, err
	}
	l.tree.Tree.How, l.tree.Shape.Tile = shape.how, shape.tile
	for _, p := range []*device.Ptr{&l.at.vals, &l.at.fresh} {
		*p, err = put(g, l.want)
		errs = errors.Join(errs, err)
	}
	l.at.keys, err = put(g, l.keys)
	errs = errors.Join(errs, err)
	l.at.out, err = g.alloc(len(l.keys))
	if errs = errors.Join(errs, err); errs != nil {
		return nil, errors.Join(errs, l.tree.Close())
	}
	return l, nil
}

func (l *latchedTree[W]) batch(get bool, n int) error {
	return l.tree.Kernels.Batch(l.g.stream, &l.g.blinkParams, &l.tree.Tree, l.tree.Shape, get, 0, l.at.keys, l.at.vals, n, l.at.out)
}

// clear makes the tree empty, and sets the values to those of the keys.
func (l *latchedTree[W]) clear() error {
	_, err := l.tree.Kernels.Build(l.g.stream, &l.g.blinkParams, &l.tree.Tree, l.tree.Shape, l.at.keys, l.at.vals, 0, l.shape.order)
	return errors.Join(err, l.refresh())
}

func (l *latchedTree[W]) refresh() error {
	return l.g.stream.CopyDevice(l.at.vals, l.at.fresh, len(l.keys)*l.shape.bits/8)
}

// check looks at the answers of lookups.
func (l *latchedTree[W]) check(ops int) error {
	return readBack(l.g, l.at.vals, ops, func(first int, part []W) error {
		for i, v := range part {
			if v != l.want[first+i] {
				return fmt.Errorf("key %d has the value %d, not %d", l.keys[first+i], v, l.want[first+i])
			}
		}
		return nil
	})
}

// latchedInsert fills the tree from empty. The check looks every key up.
func latchedInsert[W word](l *latchedTree[W]) (*subject, error) {
	sub := l.g.subject(l.shape.name, 0, func(n int) error { return l.batch(false, n) }, func(int) error { return l.clear() },
		func(n int) error { return errors.Join(l.batch(true, n), l.check(n)) })
	sub.whole = true
	return sub, nil
}

// latchedSearch fills the tree and looks all keys up.
func latchedSearch[W word](l *latchedTree[W]) (*subject, error) {
	if err := errors.Join(l.clear(), l.batch(false, len(l.keys)), l.g.stream.Synchronize()); err != nil {
		return nil, err
	}
	nodes, err := l.tree.Nodes()
	if err != nil {
		return nil, err
	}
	bytes := float64(nodes*l.tree.Shape.NodeBytes()) / float64(len(l.keys))
	sub := l.g.subject(l.shape.name, bytes, func(n int) error { return l.batch(true, n) },
		func(n int) error { return l.g.stream.Fill(l.at.vals, 0, n*l.shape.bits/8) }, l.check)
	sub.whole = true
	return sub, nil
}

// latchedSubject returns the work of a shape, and its tree.
func latchedSubject[W word](g *gpuRig, shape latchedShape, d *dataset[uint64], work func(*latchedTree[W]) (*subject, error)) (*subject, func() error, error) {
	l, err := newLatchedTree[W](g, shape, d)
	if err != nil {
		return nil, nil, err
	}
	sub, err := work(l)
	return sub, l.tree.Close, err
}

// runLatched measures every shape on every sequence.
func runLatched(s *session, insert bool) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		stores := slices.DeleteFunc(cppStores(s), func(m storeMaker) bool { return m.name != "std::map" })
		return eachOf(s, append(slices.Clip(sequences), sequence{"mesh-like", mesh}), func(name string, d *dataset[uint64]) error {
			return g.clear(len(d.keys), latchedContest(g, name, d, insert, stores))
		})
	})
	s.setGigas()
	return err
}

// addLatched adds a latched tree of each shape to a contest, the first as what the
// others are compared with. done gives back what was made, also after an error.
func addLatched(c *contest, shapes []latchedShape, subjectOf func(latchedShape) (*subject, func() error, error)) (done func() error, err error) {
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
		c.subjects = append(c.subjects, sub)
	}
	c.subjects[0].reference = true
	return done, nil
}

func latchedContest(g *gpuRig, name string, d *dataset[uint64], insert bool, yardsticks []storeMaker) (err error) {
	c := &contest{n: len(d.keys), threads: 1, label: name, ops: len(d.keys)}
	done, err := addLatched(c, latchedShapes, func(shape latchedShape) (*subject, func() error, error) {
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
		return yardstickSearch(g.s, c, d, yardsticks)
	}
	for _, m := range yardsticks {
		if g.s.fits(m.name, len(d.keys), 2*m.peak) {
			c.subjects = append(c.subjects, fills(g.s, d, m, m.name, false, store.Set))
		}
	}
	return g.s.compete(c)
}

// yardstickSearch runs a contest of lookups with maps of the CPU beside.
func yardstickSearch(s *session, c *contest, d *dataset[uint64], makers []storeMaker) error {
	stores, err := buildStores(s, len(d.keys), makers, growth{d}.grow)
	if err != nil {
		return err
	}
	defer closeStores(stores)
	l := newLookups(s, d)
	l.q, l.vals = d.keys, make([]uint64, len(d.keys))
	l.found, l.want = make([]bool, len(d.keys)), slices.Repeat([]bool{true}, len(d.keys))
	for _, st := range stores {
		c.subjects = append(c.subjects, l.ask(st, st.Name(), 0, false))
	}
	return s.compete(c)
}

// runLatchedHot sets values of keys that fall on some of the leaves only.
func runLatchedHot(s *session) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			if err := g.clear(n, latchedHot(g, n)); err != nil {
				return err
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

// hotLeaves are numbers of leaves that the operations of a launch fall on.
var hotLeaves = []int{8 * mega, mega, 64 * kilo, kilo, 32, 1}

func latchedHot(g *gpuRig, n int) (err error) {
	const order = 16
	all := &dataset[uint64]{keys: countUp(n)}
	l, err := newLatchedTree[uint64](g, latchedShapes[0], all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.tree.Close()) }()
	_, err = l.tree.Kernels.Build(g.stream, &g.blinkParams, &l.tree.Tree, l.tree.Shape, l.at.keys, l.at.fresh, n, order/2)
	if err = errors.Join(err, g.stream.Synchronize()); err != nil {
		return err
	}
	rng := newRand(g.s.seed, streamQueries)
	for _, leaves := range hotLeaves {
		keys := min(n, leaves*order/2)
		if leaves > 1 && leaves*order/2 > n {
			continue // more leaves than there are
		}
		ops := min(g.s.queries, n)
		for i := range ops {
			l.keys[i] = uint64(rng.IntN(keys))
			l.want[i] = valueOf(l.keys[i])
		}
		if err := errors.Join(g.stream.CopyIn(l.at.keys, arena.Bytes(l.keys[:ops])), g.stream.CopyIn(l.at.fresh, arena.Bytes(l.want[:ops])), l.refresh(), g.stream.Synchronize()); err != nil {
			return err
		}
		sub := g.subject(l.shape.name, 0, func(ops int) error { return l.batch(false, ops) }, func(int) error { return l.refresh() },
			func(ops int) error { return l.check(ops) })
		sub.reference = true
		c := &contest{n: n, threads: 1, label: fmt.Sprint(leaves), ops: ops, subjects: []*subject{sub}}
		if err := g.s.compete(c); err != nil {
			return err
		}
	}
	return nil
}
