package hbplus

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

// rebuildGPU is the GPU of rebuild: memory for the inner levels, and Pando's
// own trees. A nil one has neither.
type rebuildGPU struct {
	dev    rig.Device
	stream rig.Stream
	at     rig.Ptr
	bytes  int
	trees  []*ours.FaceTree[uint64]
}

// withRebuildGPU calls body with a GPU, or with nil if there is none.
func withRebuildGPU(s *contest.Session, d *data.Dataset[uint64], there bool, threads int, body func(*rebuildGPU) error) (err error) {
	if !there {
		return body(nil)
	}
	g := new(rebuildGPU)
	if g.dev, err = rig.Open(s); err != nil {
		return err
	}
	defer func() {
		for _, t := range g.trees {
			t.Tree.Close()
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
func (g *rebuildGPU) sets(p *work.Pairs, n int) (out []*contest.Subject) {
	if g == nil {
		return nil
	}
	for _, t := range g.trees {
		for _, r := range t.Rows() {
			var took time.Duration
			out = append(out, &contest.Subject{
				System: r.Name, Whole: true,
				Do: func(ops int) (err error) {
					took, err = t.Batches(ops, ops, r.Apart, func(lo, hi int) error { return t.Tree.SetBatch(p.Keys[lo:hi], p.Vals[lo:hi]) })
					return err
				},
				Clock: func() time.Duration { return took },
				Check: func(int) error { return takeOut(t, p, n) },
			})
		}
	}
	return out
}

// buildInner builds the tree of a Frozen, whose inner levels can be had.
func buildInner(d *data.Dataset[uint64], threads int) (peers.Made[uint64], error) {
	tree, err := inside.BuildTree(d, 0, threads)
	if err != nil {
		return peers.Made[uint64]{}, err
	}
	cpu := inside.NewPairsCPU(tree, threads)
	image := tree.Image()
	return peers.Made[uint64]{
		Entries: tree.Len(),
		Get: func(k uint64) (uint64, bool) {
			v, ok := []uint64{0}, []bool{false}
			cpu.GetPairs([]uint64{k}, v, ok)
			return v[0], ok[0]
		},
		Close:  tree.Release,
		All:    peers.GetsBy[uint64](cpu.GetPairs),
		Levels: image.Memory[image.Level(0):image.Level(image.Depth())],
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
