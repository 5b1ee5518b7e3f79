package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/implicit"
)

var gpuPointU64 = &experiment{
	name:    "gpu-point-u64",
	about:   "lookups, uint64 to uint64, random hits, on the GPU, queries and results in its memory, timed by events",
	figure:  "the GPU's part of fig. 16(a) of the " + paper16 + " (search kernel: section 5.3, appendix D), leaves included",
	per:     "one key looked up: its value, and a bit that says whether it was found",
	sizes:   []int{16 * mega, 64 * mega},
	queries: 128 * mega,
	extra:   gigaColumns,
	run:     runGPUPoint,
}

func runGPUPoint(s *session) error {
	const queryHost = 8 + 8 + 1 // query, and the CPU's value and flag
	err := withGPU(s, queryHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint64]) error {
			return g.clear(len(d.keys), gpuPoints(g, d))
		})
	})
	s.setGigas()
	return err
}

// residentPoints is one contest: the queries, on the host and on the GPU. The
// expected answers follow from them.
type residentPoints struct {
	g     *gpuRig
	q     []uint64
	vals  []uint64 // the CPU's answers
	found []bool
	keys  device.Ptr
	out   device.Ptr
	bits  device.Ptr
}

func gpuPoints(g *gpuRig, d *dataset[uint64]) error {
	s := g.s
	s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
	pairs, err := upload(g, d, implicit.Pairs, 8)
	if err != nil {
		return err
	}
	apart, err := upload(g, d, implicit.Apart, 8)
	if err != nil {
		return err
	}
	p := &residentPoints{g: g, q: make([]uint64, s.queries), vals: make([]uint64, s.queries), found: make([]bool, s.queries)}
	drawPieces(s.seed, 0, p.q, d.hits)
	if err := p.prepare(); err != nil {
		return err
	}
	f, err := openFrozenFor(allCores(), namePandoCPU, d.keys, d.vals)
	if err != nil {
		return err
	}
	defer f.Close()
	return withGatherLimit(g, pairs.leaves, func(limit *gatherLimit) error {
		return withThrust(s, nameThrustGather, gpu.Point64, len(d.keys), pairBytes[uint64](), func(peer *subject) error {
			subjects := []*subject{p.onGPU(namePandoGPUPairs, pairs, p.askPairs), p.onGPU(namePandoGPUApart, apart, p.askApart),
				p.onCPU(frozenMap[uint64]{f}), peer}
			if limit != nil {
				subjects = append(subjects, limit.subject())
			}
			return competeOnGPU(g, len(d.keys), subjects)
		})
	})
}

func (p *residentPoints) prepare() (err error) {
	if p.keys, err = put(p.g, p.q); err != nil {
		return err
	}
	if p.out, err = p.g.alloc(8 * len(p.q)); err != nil {
		return err
	}
	p.bits, err = p.g.alloc(bitBytes(len(p.q)))
	return err
}

// bitBytes returns the size in bytes of n bits in words of 32 bits.
func bitBytes(n int) int { return (n + 31) / 32 * 4 }

func (p *residentPoints) askPairs(t *gpuTree, ops int) error {
	return p.g.kernels.Pairs(p.g.stream, &p.g.params, &t.Tree, 64, p.keys, ops, p.out, p.bits)
}

func (p *residentPoints) askApart(t *gpuTree, ops int) error {
	return p.g.kernels.Apart(p.g.stream, &p.g.params, &t.Tree, 64, 64, p.keys, ops, p.out, p.bits)
}

func (p *residentPoints) onGPU(name string, t *gpuTree, ask func(t *gpuTree, ops int) error) *subject {
	g := p.g
	return g.subject(name, t.perEntry,
		func(ops int) error { return errors.Join(t.favor(g), ask(t, ops)) },
		func(ops int) error {
			if err := g.stream.Fill(p.out, math.MaxUint32, 8*ops); err != nil {
				return err
			}
			return g.stream.Fill(p.bits, 0x55555555, bitBytes(ops))
		},
		func(ops int) error {
			if err := readBack(g, p.out, ops, p.compare); err != nil {
				return err
			}
			return readBack(g, p.bits, bitBytes(ops)/4, func(first int, part []uint32) error { return allSet(first, part, ops) })
		})
}

// compare checks every value that came back from the GPU.
func (p *residentPoints) compare(first int, part []uint64) error {
	for i, v := range part {
		if k := p.q[first+i]; v != valueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d; it should be %d", k, v, valueOf(k))
		}
	}
	return nil
}

// allSet checks words of found bits, starting with that of query 32·first: all
// must be set, since all n queries are hits, and none after the last.
func allSet(first int, part []uint32, n int) error {
	for i, w := range part {
		at := 32 * (first + i)
		want := uint32(math.MaxUint32)
		if n-at < 32 {
			want = 1<<(n-at) - 1
		}
		if w != want {
			return fmt.Errorf("found bit of query %d is wrong", at+bits.TrailingZeros32(w^want))
		}
	}
	return nil
}

func (p *residentPoints) onCPU(f frozenMap[uint64]) *subject {
	hits := 0
	return &subject{
		system: namePandoCPU,
		bytes:  f.BytesPerEntry(),
		do: func(ops int) error {
			hits = f.Get(p.q[:ops], p.vals[:ops], p.found[:ops])
			return nil
		},
		check: func(ops int) error { return p.checkCPU(ops, hits) },
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
