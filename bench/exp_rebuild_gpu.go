package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
)

// rebuildGPU is the GPU of rebuild: memory for the inner levels, and Pando's
// own trees. A nil one has neither.
type rebuildGPU struct {
	dev    device.Device
	stream device.Stream
	at     device.Ptr
	bytes  int
	trees  []*faceTree[uint64]
}

// withRebuildGPU calls body with a GPU, or with nil if there is none.
func withRebuildGPU(s *session, d *dataset[uint64], there bool, threads int, body func(*rebuildGPU) error) (err error) {
	if !there {
		return body(nil)
	}
	g := new(rebuildGPU)
	if g.dev, err = s.openGPU(); err != nil {
		return err
	}
	defer func() {
		for _, t := range g.trees {
			t.tree.Close()
		}
		err = errors.Join(err, g.dev.Close()) // and everything on it
	}()
	if g.stream, err = g.dev.NewStream(); err != nil {
		return err
	}
	if g.trees, err = openFaces(s, d, threads); err != nil {
		return err
	}
	return body(g)
}

// targets returns where inner levels are copied to: nil stands for host memory.
func (g *rebuildGPU) targets() []*rebuildGPU {
	if g == nil {
		return []*rebuildGPU{nil}
	}
	return []*rebuildGPU{nil, g}
}

// sets returns Pando's trees on the GPU, which take the pairs of a round by
// SetBatch; n is the number of entries before.
func (g *rebuildGPU) sets(p *newPairs, n int) (out []*subject) {
	if g == nil {
		return nil
	}
	for _, t := range g.trees {
		for _, r := range t.rows() {
			var took time.Duration
			out = append(out, &subject{
				system: r.name, whole: true,
				do: func(ops int) (err error) {
					took, err = t.batches(ops, ops, r.apart, func(lo, hi int) error { return t.tree.SetBatch(p.keys[lo:hi], p.vals[lo:hi]) })
					return err
				},
				clock: func() time.Duration { return took },
				check: func(int) error { return takeOut(t, p, n) },
			})
		}
	}
	return out
}

// buildInner builds the tree of a Frozen, whose inner levels can be had.
func buildInner(d *dataset[uint64], threads int) (made[uint64], error) {
	tree, err := buildTree(d, implicit.Config{Workers: threads})
	if err != nil {
		return made[uint64]{}, err
	}
	cpu := cpuSchedule[uint64]{exec.NewCPU(implicit.Paired[uint64]{Tree: tree}, len(d.keys), threads)}
	image := tree.Image()
	return made[uint64]{
		entries: tree.Len(),
		get: func(k uint64) (uint64, bool) {
			v, ok := []uint64{0}, []bool{false}
			cpu.GetPairs([]uint64{k}, v, ok)
			return v[0], ok[0]
		},
		close:  tree.Release,
		all:    getsBy[uint64](cpu.GetPairs),
		levels: image.Memory[image.Level(0):image.Level(image.Depth())],
	}, nil
}

// copyInner copies inner levels to the GPU, page-locked for the time of the copy
// if the system allows it, as package exec does. Memory for them is there, unless
// there are more than ever before.
func (g *rebuildGPU) copyInner(levels []byte) (err error) {
	if len(levels) == 0 {
		return nil
	}
	if len(levels) > g.bytes {
		if g.at != 0 {
			err = g.dev.Free(g.at)
		}
		g.bytes = len(levels) + len(levels)/4
		var allocated error
		g.at, allocated = g.dev.Alloc(g.bytes)
		if err = errors.Join(err, allocated); err != nil {
			return err
		}
	}
	registered := g.dev.Register(levels) == nil
	err = errors.Join(g.stream.CopyIn(g.at, levels), g.stream.Synchronize())
	if registered {
		err = errors.Join(err, g.dev.Unregister(levels))
	}
	return err
}

// checkInner looks whether the GPU has the inner levels.
func (g *rebuildGPU) checkInner(levels []byte) error {
	got := make([]byte, len(levels))
	if len(got) > 0 {
		if err := errors.Join(g.stream.CopyOut(got, g.at), g.stream.Synchronize(), g.stream.Fill(g.at, 0x55555555, len(got)/4*4), g.stream.Synchronize()); err != nil {
			return err
		}
	}
	if !bytes.Equal(got, levels) {
		return fmt.Errorf("the GPU's copy of %d bytes of inner levels differs", len(levels))
	}
	return nil
}
