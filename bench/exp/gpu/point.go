package gpu

import (
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
)

var gpuPointU64 = &contest.Experiment{
	Name:    "gpu-point-u64",
	About:   "lookups, uint64 to uint64, random hits, on the GPU, queries and results in its memory, timed by events",
	Figure:  "the GPU's part of fig. 16(a) of the " + contest.Paper16 + " (search kernel: section 5.3, appendix D), leaves included",
	Per:     "one key looked up: its value, and a bit that says whether it was found",
	Sizes:   []int{16 * contest.Mega, 64 * contest.Mega},
	Queries: 128 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runGPUPoint,
}

func runGPUPoint(s *contest.Session) error {
	const queryHost = 8 + 8 + 1 // query, and the CPU's value and flag
	err := rig.With(s, queryHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
			return g.Clear(len(d.Keys), gpuPoints(g, d))
		})
	})
	s.SetGigas()
	return err
}

// residentPoints is one contest: the queries, on the host and on the GPU. The
// expected answers follow from them.
type residentPoints struct {
	g     *rig.Rig
	q     []uint64
	vals  []uint64 // the CPU's answers
	found []bool
	keys  rig.Ptr
	out   rig.Ptr
	bits  rig.Ptr
}

func gpuPoints(g *rig.Rig, d *data.Dataset[uint64]) error {
	s := g.S
	s.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
	pairs, err := rig.UploadPairs(g, d)
	if err != nil {
		return err
	}
	apart, err := rig.UploadApart(g, d)
	if err != nil {
		return err
	}
	p := &residentPoints{g: g, q: make([]uint64, s.Queries), vals: make([]uint64, s.Queries), found: make([]bool, s.Queries)}
	data.DrawPieces(s.Seed, 0, p.q, d.Hits)
	if err := p.prepare(); err != nil {
		return err
	}
	f, err := ours.OpenFrozenFor(contest.AllCores(), ours.NameCPU, d.Keys, d.Vals)
	if err != nil {
		return err
	}
	defer f.Close()
	return rig.WithGatherLimit(g, pairs.Leaves, func(limit *rig.GatherLimit) error {
		return peers.WithThrust(s, peers.NameThrustGather, gpu.Point64, len(d.Keys), data.PairBytes[uint64](), func(peer *contest.Subject) error {
			subjects := []*contest.Subject{p.onGPU(ours.NameGPUPairs, pairs, p.askPairs), p.onGPU(ours.NameGPUApart, apart, p.askApart),
				p.unsigned(ours.NameGPUPairs, pairs, p.askPairs), p.unsigned(ours.NameGPUApart, apart, p.askApart), p.onCPU(ours.FrozenMap[uint64]{Frozen: f}), peer}
			if limit != nil {
				subjects = append(subjects, limit.Subject())
			}
			return rig.Compete(g, len(d.Keys), subjects)
		})
	})
}

func (p *residentPoints) prepare() (err error) {
	if p.keys, err = rig.Put(p.g, p.q); err != nil {
		return err
	}
	if p.out, err = p.g.Alloc(8 * len(p.q)); err != nil {
		return err
	}
	p.bits, err = p.g.Alloc(rig.BitBytes(len(p.q)))
	return err
}

func (p *residentPoints) askPairs(t *rig.Tree, ops int) error {
	return p.g.Kernels.Pairs(p.g.Stream, &p.g.Params, &t.Tree, t.Signs, 64, p.keys, ops, p.out, p.bits)
}

func (p *residentPoints) askApart(t *rig.Tree, ops int) error {
	return p.g.Kernels.Apart(p.g.Stream, &p.g.Params, &t.Tree, t.Signs, 64, 64, p.keys, ops, p.out, p.bits)
}

// unsigned asks a tree by its inner nodes, if it has signs to compare them with.
func (p *residentPoints) unsigned(name string, t *rig.Tree, ask func(t *rig.Tree, ops int) error) *contest.Subject {
	if t = t.Unsigned(); t == nil {
		return nil
	}
	return p.onGPU(name+ours.Unsigned, t, ask)
}

func (p *residentPoints) onGPU(name string, t *rig.Tree, ask func(t *rig.Tree, ops int) error) *contest.Subject {
	g := p.g
	return g.Subject(name, t.PerEntry,
		func(ops int) error { return errors.Join(t.Favor(g), ask(t, ops)) },
		func(ops int) error {
			if err := g.Stream.Fill(p.out, math.MaxUint32, 8*ops); err != nil {
				return err
			}
			return g.Stream.Fill(p.bits, 0x55555555, rig.BitBytes(ops))
		},
		func(ops int) error {
			if err := rig.ReadBack(g, p.out, ops, p.compare); err != nil {
				return err
			}
			return rig.ReadBack(g, p.bits, rig.BitBytes(ops)/4, func(first int, part []uint32) error { return rig.AllSet(first, part, ops) })
		})
}

// compare checks every value that came back from the GPU.
func (p *residentPoints) compare(first int, part []uint64) error {
	for i, v := range part {
		if k := p.q[first+i]; v != data.ValueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d; it should be %d", k, v, data.ValueOf(k))
		}
	}
	return nil
}

func (p *residentPoints) onCPU(f ours.FrozenMap[uint64]) *contest.Subject {
	hits := 0
	return &contest.Subject{
		System: ours.NameCPU,
		Bytes:  f.BytesPerEntry(),
		Do: func(ops int) error {
			hits = f.Get(p.q[:ops], p.vals[:ops], p.found[:ops])
			return nil
		},
		Check: func(ops int) error { return p.checkCPU(ops, hits) },
	}
}

// checkCPU checks every answer of the CPU and wipes it.
func (p *residentPoints) checkCPU(ops, hits int) error {
	if err := p.compare(0, p.vals[:ops]); err != nil {
		return err
	}
	for i, ok := range p.found[:ops] {
		if !ok {
			return fmt.Errorf("key %d is not found", p.q[i])
		}
		p.vals[i], p.found[i] = 0, false
	}
	if hits != ops {
		return fmt.Errorf("%d hits reported where there are %d", hits, ops)
	}
	return nil
}
