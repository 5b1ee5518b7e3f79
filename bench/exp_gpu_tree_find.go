package main

import (
	"errors"
	"math"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/implicit"
)

var gpuTreeFind = &experiment{
	name:    "gpu-tree-find",
	about:   "lookups in the GPU's mutable tree, loaded and after random inserts, beside Frozen's kernel, all in the GPU's memory, timed by events",
	per:     "one key looked up: its value, and a bit that says whether it was found",
	sizes:   []int{64 * mega},
	queries: 128 * mega,
	extra:   gigaColumns,
	run:     runGPUTreeFind,
}

func runGPUTreeFind(s *session) error {
	const queryHost = 8 + 8 + 1
	err := withGPU(s, queryHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint64]) error {
			return g.clearTree(len(d.keys), gpuTreeFinds(g, d))
		})
	})
	s.setGigas()
	return err
}

func gpuTreeFinds(g *gpuRig, d *dataset[uint64]) (err error) {
	s := g.s
	loaded, err := openResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loaded.close()) }()
	grown, err := growResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, grown.close()) }()
	pairs, err := upload(g, d, implicit.Pairs, 8)
	if err != nil {
		return err
	}
	p := &residentPoints{g: g, q: make([]uint64, s.queries)}
	drawPieces(s.seed, 0, p.q, d.hits)
	if err := p.prepare(); err != nil {
		return err
	}
	return withThrust(s, nameThrustGather, gpu.Point64, len(d.keys), pairBytes[uint64](), func(peer *subject) error {
		return competeOnGPU(g, len(d.keys), []*subject{
			p.inTree(namePandoGPUTree+", loaded", loaded),
			p.inTree(namePandoGPUTree+", after random inserts", grown),
			p.onGPU(namePandoGPUPairs, pairs, p.askPairs), peer})
	})
}

// growResident makes a tree of which one half is loaded, and the other comes in
// random order, in batches that are taken leaf by leaf.
func growResident(g *gpuRig, d *dataset[uint64]) (*liveTree[uint64], error) {
	half := &dataset[uint64]{}
	for i := 0; i < len(d.keys); i += 2 {
		half.keys, half.vals = append(half.keys, d.keys[i]), append(half.vals, d.vals[i])
	}
	t, err := openResident(g, half)
	if err != nil {
		return nil, err
	}
	t.tree.SetFlat(flatNever)
	rest := len(d.keys) / 2
	keys, vals := make([]uint64, 0, mega), make([]uint64, 0, mega)
	for i, step := 0, strideOf(max(1, rest)); i < rest && err == nil; i++ {
		k := d.keys[2*(i*step%rest)+1]
		keys, vals = append(keys, k), append(vals, valueOf(k))
		if len(keys) == cap(keys) || i == rest-1 {
			err = t.set(keys, vals, false)
			keys, vals = keys[:0], vals[:0]
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// inTree asks a mutable tree, in its own stream.
func (p *residentPoints) inTree(name string, t *liveTree[uint64]) *subject {
	g := p.g
	sub := p.onGPU(name, &gpuTree{perEntry: t.bytes()}, nil)
	usual := g.stream
	in := func(st device.Stream, f func() error) error {
		g.stream = st
		defer func() { g.stream = usual }()
		return f()
	}
	sub.do = func(ops int) error {
		return in(t.tree.Stream(), func() error {
			return g.time(func() error { return t.tree.Find(p.keys, ops, p.out, p.bits) }, func() error {
				return errors.Join(g.stream.Fill(p.out, math.MaxUint32, 8*ops), g.stream.Fill(p.bits, 0x55555555, bitBytes(ops)))
			})
		})
	}
	return sub
}
