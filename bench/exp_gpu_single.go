package main

import (
	"errors"

	"github.com/pando-index/pando/internal/device"
)

// runSingleInsert times launches of one insert each, in trees that are loaded by
// bulk insert, of nodes of 16 and 32.
func runSingleInsert(s *session) error {
	return withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			if err := g.clear(n, singleContest(g, n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// singleInserts is how many launches are timed together.
const singleInserts = 64

func singleContest(g *gpuRig, n int) (err error) {
	c := &contest{n: n, threads: 1, ops: singleInserts}
	for i, shape := range latchedShapes[:2] {
		l, e := newLatchedTree[uint64](g, shape, &dataset[uint64]{keys: evens(n)})
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, l.tree.Close()) }()
		sub, e := l.singles(n)
		if e != nil {
			return e
		}
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return g.s.compete(c)
}

// evens returns 0, 2, 4 ...
func evens(n int) []uint64 {
	keys := countUp(n)
	for i := range keys {
		keys[i] *= 2
	}
	return keys
}

// singles inserts odd keys, one a launch. The tree is loaded again before each
// round, so that all of them are new.
func (l *latchedTree[W]) singles(n int) (*subject, error) {
	g, rng := l.g, newRand(l.g.s.seed, streamQueries)
	asked, ops := make([]W, singleInserts), make([]uint8, singleInserts)
	for i := range asked {
		asked[i], ops[i] = W(2*rng.IntN(n)+1), 1 // BlinkSet
	}
	keys, err := put(g, asked)
	vals, errv := put(g, asked)
	kinds, errk := put(g, ops)
	out, erro := g.alloc(singleInserts)
	if err = errors.Join(err, errv, errk, erro); err != nil {
		return nil, err
	}
	load := func(int) error {
		_, err := l.tree.Set.BlinkBuild(g.stream, &g.params, &l.tree.Tree, l.tree.Shape, l.at.keys, l.at.fresh, n, l.shape.order*3/4)
		return errors.Join(err, g.stream.CopyDevice(vals, keys, singleInserts*l.shape.bits/8))
	}
	work := func(count int) error {
		for i := range count {
			at := device.Ptr(i * l.shape.bits / 8)
			if err := l.tree.Set.BlinkOne(g.stream, &g.params, &l.tree.Tree, l.tree.Shape, kinds, keys+at, vals+at, 1, out); err != nil {
				return err
			}
		}
		return nil
	}
	check := func(count int) error {
		return errors.Join(l.tree.Set.BlinkBatch(g.stream, &g.params, &l.tree.Tree, l.tree.Shape, true, 0, keys, vals, count, out),
			readBack(g, vals, count, func(first int, part []W) error {
				for i, v := range part {
					if v != asked[first+i] {
						return errors.New("an inserted key is not there")
					}
				}
				return nil
			}))
	}
	if err := load(0); err != nil {
		return nil, err
	}
	sub := g.subject(l.shape.name, 0, work, load, check)
	sub.whole = true
	return sub, nil
}
