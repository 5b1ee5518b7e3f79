package latched

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/papers/kaczmarek"
	"github.com/pando-index/pando/papers/thesis"
)

// runSingleInsert times launches of one insert each: in latched trees of nodes of
// 16 and 32, by a tile, and in trees of large pages, by a block.
func runSingleInsert(s *contest.Session) error {
	return rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			if err := g.Clear(n, singleContest(g, n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// singleInserts is how many launches are timed together.
const singleInserts = 64

// singlePages are the pages of the trees of large pages.
var singlePages = []int{2048, 16384}

// singles are inserts of odd keys into a tree of even ones. The tree is loaded
// again before each round, so that all of them are new. All trees are loaded from
// the same keys, which are their values, too: a billion take 8 GB.
type singles struct {
	g               *rig.Rig
	n               int
	asked           []uint64
	loaded          rig.Ptr // n even keys
	keys, vals, out rig.Ptr // of the inserts
}

func singleContest(g *rig.Rig, n int) (err error) {
	w := &singles{g: g, n: n, asked: make([]uint64, singleInserts)}
	if err := w.prepare(); err != nil {
		return err
	}
	set, err := g.Latched()
	if err != nil {
		return err
	}
	c := &contest.Contest{N: n, Threads: 1, Ops: singleInserts}
	var trees []interface{ Close() error }
	defer func() {
		for _, t := range trees {
			err = errors.Join(err, t.Close())
		}
	}()
	for _, shape := range latchedShapes[:2] {
		tree, err := thesis.NewBlinkOf[uint64](g.Dev, set, shape.order, loadedNodes(n, shape.order*3/4)+64)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
		sub, err := w.latched(shape, tree)
		if err != nil {
			return err
		}
		c.Subjects = append(c.Subjects, sub)
	}
	for _, order := range singlePages {
		tree, err := kaczmarek.NewPagesOf[uint64](g.Dev, set, order, loadedNodes(n, order*3/4)+64, 256)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
		c.Subjects = append(c.Subjects, w.paged(order, tree))
	}
	c.Subjects[0].Reference = true
	return g.S.Compete(c)
}

// loadedNodes returns how many nodes a tree of n entries has, fill of them a node.
func loadedNodes(n, fill int) int {
	nodes := 1
	for n > fill {
		n = (n-1)/fill + 1
		nodes += n
	}
	return nodes
}

func (w *singles) prepare() (err error) {
	rng := data.NewRand(w.g.S.Seed, data.StreamQueries)
	for i := range w.asked {
		w.asked[i] = uint64(2*rng.IntN(w.n) + 1)
	}
	if w.loaded, err = rig.PutAll(w.g, w.n, func(i int) uint64 { return uint64(2 * i) }); err != nil {
		return err
	}
	var errk, errv error
	w.keys, errk = rig.Put(w.g, w.asked)
	w.vals, errv = rig.Put(w.g, w.asked)
	w.out, err = w.g.Alloc(singleInserts)
	return errors.Join(err, errk, errv)
}

// subject returns one that loads a tree, inserts a key, and looks keys up.
func (w *singles) subject(name string, load func() error, insert func(at rig.Ptr) error, get func(n int) error) *contest.Subject {
	refresh := func() error { return w.g.Stream.CopyDevice(w.vals, w.keys, 8*singleInserts) }
	begin := func(int) error { return errors.Join(load(), refresh()) }
	work := func(n int) error {
		for i := range n {
			if err := insert(rig.Ptr(8 * i)); err != nil {
				return err
			}
		}
		return nil
	}
	check := func(n int) error {
		got := make([]uint64, n)
		err := errors.Join(w.g.Stream.Fill(w.vals, 0, 8*n), get(n), w.g.Stream.CopyOut(inside.Bytes(got), w.vals), w.g.Stream.Synchronize())
		for i, v := range got {
			if v != w.asked[i] && err == nil {
				err = fmt.Errorf("key %d was inserted and has the value %d", w.asked[i], v)
			}
		}
		return err
	}
	sub := w.g.Subject(name, 0, work, begin, check)
	sub.Whole = true
	return sub
}

// latched inserts into a latched tree, one tile a launch.
func (w *singles) latched(shape latchedShape, tree *thesis.Blink[uint64]) (*contest.Subject, error) {
	g := w.g
	kinds, err := rig.Put(g, []uint8{1}) // BlinkSet
	if err != nil {
		return nil, err
	}
	load := func() error {
		_, err := tree.Kernels.Build(g.Stream, &g.BlinkParams, &tree.Tree, tree.Shape, w.loaded, w.loaded, w.n, shape.order*3/4)
		return err
	}
	insert := func(at rig.Ptr) error {
		return tree.Kernels.One(g.Stream, &g.BlinkParams, &tree.Tree, tree.Shape, kinds, w.keys+at, w.vals+at, 1, w.out)
	}
	get := func(n int) error {
		return tree.Kernels.Batch(g.Stream, &g.BlinkParams, &tree.Tree, tree.Shape, true, 0, w.keys, w.vals, n, w.out)
	}
	return w.subject(shape.name, load, insert, get), load()
}

// paged inserts into a tree of large pages, one block a launch.
func (w *singles) paged(order int, tree *kaczmarek.Pages[uint64]) *contest.Subject {
	g := w.g
	load := func() error {
		return tree.Kernels.Build(g.Stream, &g.PagesParams, &tree.Tree, 64, tree.Blocks, tree.Threads, w.loaded, w.loaded, w.n, order*3/4)
	}
	insert := func(at rig.Ptr) error {
		return tree.Kernels.Insert(g.Stream, &g.PagesParams, &tree.Tree, 64, tree.Threads, w.keys+at, w.vals+at, 1, w.out)
	}
	get := func(n int) error {
		return tree.Kernels.Get(g.Stream, &g.PagesParams, &tree.Tree, 64, tree.Threads, w.keys, w.vals, n, w.out)
	}
	return w.subject(fmt.Sprintf("pages of %d, 256 threads", order), load, insert, get)
}
