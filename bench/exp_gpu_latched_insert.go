package main

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/papers/thesis"
)

var gpuLatchedInsert = &experiment{
	name:     "gpu-latched-insert",
	about:    "a latched tree on the GPU of the size that it has: uniform inserts, values set, lookups, by one launch each",
	per:      "one operation",
	caseName: "operation",
	sizes:    []int{mega, 64 * mega},
	queries:  16 * mega,
	extra:    gigaColumns,
	run:      runLatchedInsert,
}

// The operations of gpu-latched-insert.
const (
	latchedNew   = "insert" // keys that are not there
	latchedThere = "set"    // keys that are
	latchedFind  = "get"
)

func runLatchedInsert(s *session) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			for _, op := range []string{latchedNew, latchedThere, latchedFind} {
				if err := g.clear(n, latchedInserts(g, n, op)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

func latchedInserts(g *gpuRig, n int, op string) (err error) {
	c := &contest{n: n, threads: 1, label: op, ops: g.s.queries}
	done, err := addLatched(c, latchedWays, func(shape latchedShape) (*subject, func() error, error) {
		if shape.bits == 32 {
			return latchedResidentSubject[uint32](g, shape, n, op)
		}
		return latchedResidentSubject[uint64](g, shape, n, op)
	})
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return err
	}
	return g.s.compete(c)
}

// latchedResident is a latched tree of even keys, as full as random inserts leave
// it, and a batch of operations. Values are keys.
type latchedResident[W word] struct {
	g                *gpuRig
	shape            latchedShape
	n                int
	tree             *thesis.Blink[W]
	loaded           device.Ptr
	asked, vals, out device.Ptr
}

func latchedResidentSubject[W word](g *gpuRig, shape latchedShape, n int, op string) (*subject, func() error, error) {
	ops, odd := g.s.queries, 0
	if op == latchedNew {
		odd = 1
	}
	nodes := loadedNodes(n, shape.order*fullPercent/100) + latchedNodes(ops, shape.order)
	set, err := g.latched()
	if err != nil {
		return nil, nil, err
	}
	tree, err := thesis.NewBlinkOf[W](g.dev, set, shape.order, nodes)
	if err != nil {
		return nil, nil, err
	}
	tree.Tree.How, tree.Shape.Tile = shape.how, shape.tile
	r := &latchedResident[W]{g: g, shape: shape, n: n, tree: tree}
	mix := func(i int) uint64 { // SplitMix64
		x := (g.s.seed<<40 + uint64(i) + 1) * 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	var errl, erra, errv error
	r.loaded, errl = putAll(g, n, func(i int) W { return W(2 * i) })
	r.asked, erra = putAll(g, ops, func(i int) W { return W(2*(mix(i)%uint64(n)) + uint64(odd)) })
	r.vals, errv = g.alloc(ops * shape.bits / 8)
	r.out, err = g.alloc(ops)
	if err = errors.Join(err, errl, erra, errv); err != nil {
		return nil, tree.Close, err
	}
	sub := g.subject(shape.name, 0, func(ops int) error { return r.batch(op == latchedFind, ops) }, r.begin, r.check)
	sub.whole = true
	return sub, tree.Close, r.begin(ops)
}

func (r *latchedResident[W]) batch(get bool, ops int) error {
	return r.tree.Kernels.Batch(r.g.stream, &r.g.blinkParams, &r.tree.Tree, r.tree.Shape, get, 0, r.asked, r.vals, ops, r.out)
}

// begin loads the tree, and sets values to those of the keys.
func (r *latchedResident[W]) begin(ops int) error {
	_, err := r.tree.Kernels.Build(r.g.stream, &r.g.blinkParams, &r.tree.Tree, r.tree.Shape, r.loaded, r.loaded, r.n, r.shape.order*fullPercent/100)
	return errors.Join(err, r.g.stream.CopyDevice(r.vals, r.asked, ops*r.shape.bits/8))
}

// check looks all keys up.
func (r *latchedResident[W]) check(ops int) error {
	err := errors.Join(r.g.stream.Fill(r.vals, 0, ops*r.shape.bits/8), r.batch(true, ops))
	if err != nil {
		return err
	}
	asked := make([]W, 0, ops)
	err = readBack(r.g, r.asked, ops, func(_ int, part []W) error {
		asked = append(asked, part...)
		return nil
	})
	return errors.Join(err, readBack(r.g, r.vals, ops, func(first int, part []W) error {
		for i, v := range part {
			if v != asked[first+i] {
				return fmt.Errorf("key %d has the value %d", asked[first+i], v)
			}
		}
		return nil
	}))
}
