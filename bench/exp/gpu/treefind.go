package gpu

import (
	"errors"
	"math"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
)

var gpuTreeFind = &contest.Experiment{
	Name:    "gpu-tree-find",
	About:   "lookups in the GPU's mutable tree, loaded and after random inserts, beside Frozen's kernel, all in the GPU's memory, timed by events",
	Per:     "one key looked up: its value, and a bit that says whether it was found",
	Sizes:   []int{64 * contest.Mega},
	Queries: 128 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runGPUTreeFind,
}

func runGPUTreeFind(s *contest.Session) error {
	const queryHost = 8 + 8 + 1
	err := rig.With(s, queryHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
			return g.ClearTree(len(d.Keys), gpuTreeFinds(g, d))
		})
	})
	s.SetGigas()
	return err
}

func gpuTreeFinds(g *rig.Rig, d *data.Dataset[uint64]) (err error) {
	s := g.S
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
	pairs, err := rig.UploadPairs(g, d)
	if err != nil {
		return err
	}
	p := &residentPoints{g: g, q: make([]uint64, s.Queries)}
	data.DrawPieces(s.Seed, 0, p.q, d.Hits)
	if err := p.prepare(); err != nil {
		return err
	}
	return peers.WithThrust(s, peers.NameThrustGather, gpu.Point64, len(d.Keys), data.PairBytes[uint64](), func(peer *contest.Subject) error {
		return rig.Compete(g, len(d.Keys), []*contest.Subject{
			p.inTree(ours.NameGPUTree+", loaded", loaded),
			p.inTree(ours.NameGPUTree+", after random inserts", grown),
			p.onGPU(ours.NameGPUPairs, pairs, p.askPairs), peer})
	})
}

// growResident makes a tree of which one half is loaded, and the other comes in
// random order, in batches that are taken leaf by leaf.
func growResident(g *rig.Rig, d *data.Dataset[uint64]) (*liveTree[uint64], error) {
	half := &data.Dataset[uint64]{}
	for i := 0; i < len(d.Keys); i += 2 {
		half.Keys, half.Vals = append(half.Keys, d.Keys[i]), append(half.Vals, d.Vals[i])
	}
	t, err := openResident(g, half)
	if err != nil {
		return nil, err
	}
	t.tree.SetFlat(flatNever)
	rest := len(d.Keys) / 2
	keys, vals := make([]uint64, 0, contest.Mega), make([]uint64, 0, contest.Mega)
	for i, step := 0, strideOf(max(1, rest)); i < rest && err == nil; i++ {
		k := d.Keys[2*(i*step%rest)+1]
		keys, vals = append(keys, k), append(vals, data.ValueOf(k))
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
func (p *residentPoints) inTree(name string, t *liveTree[uint64]) *contest.Subject {
	g := p.g
	sub := p.onGPU(name, &rig.Tree{PerEntry: t.bytes()}, nil)
	usual := g.Stream
	in := func(st rig.Stream, f func() error) error {
		g.Stream = st
		defer func() { g.Stream = usual }()
		return f()
	}
	sub.Do = func(ops int) error {
		return in(t.tree.Stream(), func() error {
			return g.Time(func() error { return t.tree.Find(p.keys, ops, p.out, p.bits) }, func() error {
				return errors.Join(g.Stream.Fill(p.out, math.MaxUint32, 8*ops), g.Stream.Fill(p.bits, 0x55555555, rig.BitBytes(ops)))
			})
		})
	}
	return sub
}
