package latched

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/papers/thesis"
)

var gpuLatchedInsert = &contest.Experiment{
	Name:     "gpu-latched-insert",
	About:    "a latched tree on the GPU of the size that it has: uniform inserts, values set, lookups, by one launch each",
	Per:      "one operation",
	CaseName: "operation",
	Sizes:    []int{contest.Mega, 64 * contest.Mega},
	Queries:  16 * contest.Mega,
	Extra:    contest.GigaColumns,
	Run:      runLatchedInsert,
}

// The operations of gpu-latched-insert.
const (
	latchedNew   = "insert" // keys that are not there
	latchedThere = "set"    // keys that are
	latchedFind  = "get"
)

func runLatchedInsert(s *contest.Session) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			for _, op := range []string{latchedNew, latchedThere, latchedFind} {
				if err := g.Clear(n, latchedInserts(g, n, op)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

func latchedInserts(g *rig.Rig, n int, op string) (err error) {
	c := &contest.Contest{N: n, Threads: 1, Label: op, Ops: g.S.Queries}
	done, err := addLatched(c, latchedWays, func(shape latchedShape) (*contest.Subject, func() error, error) {
		if shape.bits == 32 {
			return latchedResidentSubject[uint32](g, shape, n, op)
		}
		return latchedResidentSubject[uint64](g, shape, n, op)
	})
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return err
	}
	return g.S.Compete(c)
}

// latchedResident is a latched tree of even keys, as full as random inserts leave
// it, and a batch of operations. Values are keys.
type latchedResident[W data.Word] struct {
	g                *rig.Rig
	shape            latchedShape
	n                int
	tree             *thesis.Blink[W]
	loaded           rig.Ptr
	asked, vals, out rig.Ptr
}

func latchedResidentSubject[W data.Word](g *rig.Rig, shape latchedShape, n int, op string) (*contest.Subject, func() error, error) {
	ops, odd := g.S.Queries, 0
	if op == latchedNew {
		odd = 1
	}
	nodes := loadedNodes(n, shape.order*fullPercent/100) + latchedNodes(ops, shape.order)
	set, err := g.Latched()
	if err != nil {
		return nil, nil, err
	}
	tree, err := thesis.NewBlinkOf[W](g.Dev, set, shape.order, nodes)
	if err != nil {
		return nil, nil, err
	}
	tree.Tree.How, tree.Shape.Tile = shape.how, shape.tile
	r := &latchedResident[W]{g: g, shape: shape, n: n, tree: tree}
	mix := func(i int) uint64 { // SplitMix64
		x := (g.S.Seed<<40 + uint64(i) + 1) * 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	var errl, erra, errv error
	r.loaded, errl = rig.PutAll(g, n, func(i int) W { return W(2 * i) })
	r.asked, erra = rig.PutAll(g, ops, func(i int) W { return W(2*(mix(i)%uint64(n)) + uint64(odd)) })
	r.vals, errv = g.Alloc(ops * shape.bits / 8)
	r.out, err = g.Alloc(ops)
	if err = errors.Join(err, errl, erra, errv); err != nil {
		return nil, tree.Close, err
	}
	sub := g.Subject(shape.name, 0, func(ops int) error { return r.batch(op == latchedFind, ops) }, r.begin, r.check)
	sub.Whole = true
	return sub, tree.Close, r.begin(ops)
}

func (r *latchedResident[W]) batch(get bool, ops int) error {
	return r.tree.Kernels.Batch(r.g.Stream, &r.g.BlinkParams, &r.tree.Tree, r.tree.Shape, get, 0, r.asked, r.vals, ops, r.out)
}

// begin loads the tree, and sets values to those of the keys.
func (r *latchedResident[W]) begin(ops int) error {
	_, err := r.tree.Kernels.Build(r.g.Stream, &r.g.BlinkParams, &r.tree.Tree, r.tree.Shape, r.loaded, r.loaded, r.n, r.shape.order*fullPercent/100)
	return errors.Join(err, r.g.Stream.CopyDevice(r.vals, r.asked, ops*r.shape.bits/8))
}

// check looks all keys up.
func (r *latchedResident[W]) check(ops int) error {
	err := errors.Join(r.g.Stream.Fill(r.vals, 0, ops*r.shape.bits/8), r.batch(true, ops))
	if err != nil {
		return err
	}
	asked := make([]W, 0, ops)
	err = rig.ReadBack(r.g, r.asked, ops, func(_ int, part []W) error {
		asked = append(asked, part...)
		return nil
	})
	return errors.Join(err, rig.ReadBack(r.g, r.vals, ops, func(first int, part []W) error {
		for i, v := range part {
			if v != asked[first+i] {
				return fmt.Errorf("key %d has the value %d", asked[first+i], v)
			}
		}
		return nil
	}))
}
