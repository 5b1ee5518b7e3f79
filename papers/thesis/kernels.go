package thesis

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -I../../internal/device/kernel -S blink.cu -o blink.ptx

//go:embed blink.ptx
var blinkPTX string

// BlinkSource is the kernels of blink.cu: an operation, the bits of a key, and the pairs
// of a node.
var BlinkSource = kernel.SourceOf(&blinkPTX,
	"blinkGet32x16", "blinkGet32x32", "blinkGet64x16", "blinkGet64x32",
	"blinkSet32x16", "blinkSet32x32", "blinkSet64x16", "blinkSet64x32",
	"blinkMixed32x16", "blinkMixed32x32", "blinkMixed64x16", "blinkMixed64x32",
	"blinkRange32x16", "blinkRange32x32", "blinkRange64x16", "blinkRange64x32",
	"blinkBuild32x16", "blinkBuild32x32", "blinkBuild64x16", "blinkBuild64x32",
	"blinkGet32x16by8", "blinkGet64x16by8",
	"blinkSet32x16by8", "blinkSet64x16by8",
	"blinkMixed32x16by8", "blinkMixed64x16by8",
)

// BlinkTile is the number of lanes that share an operation on a latched tree.
const BlinkTile = 16

// BlinkMemory is a latched tree in a device's memory, as the kernels take it: struct
// Blink of blink.h, field by field.
type BlinkMemory struct {
	Nodes    device.Ptr
	State    device.Ptr // u32: nodes in use, then 1 if one was missing
	Capacity uint32     // nodes
	How      uint32     // BlinkLinks and the like
}

// The options of a latched tree, as bits.
const (
	BlinkLinks = 1 << iota // it follows side links; without, a B+-tree begins again at the root where it meets a latch
	BlinkPeeks             // inner nodes below the root are read once, and not looked at again
	BlinkTops              // a block copies the root once, when it begins
)

// BlinkOp is the kind of an operation of a mixed batch.
type BlinkOp uint8

// The operations. Each leaves the value that it found where its own was.
const (
	BlinkGet BlinkOp = iota
	BlinkSet
	BlinkDelete
)

// BlinkOutcome is the outcome of an operation.
type BlinkOutcome uint8

// The outcomes. An operation without room has changed nothing.
const (
	BlinkAbsent BlinkOutcome = iota // the key was not there
	BlinkFound
	BlinkNoRoom // the key was not there, and there is no memory for it
)

// BlinkShape selects the kernels of a latched tree.
type BlinkShape struct {
	Bits  int // of keys, and of values: 32 or 64
	Order int // pairs of a node: 16 or 32
	Block int // threads per block, a multiple of 32; 0 for 256
	Tile  int // lanes that share an operation of a batch: 0 for BlinkTile, or 8 for nodes of 16
}

// NodeBytes returns the size of a node.
func (s BlinkShape) NodeBytes() int { return 32 + 2*s.Order*s.Bits/8 }

// grid returns a grid of n threads.
func (s BlinkShape) grid(n int) device.Grid {
	if s.Block == 0 {
		return kernel.GridOf(n)
	}
	return device.Grid{Blocks: (n + s.Block - 1) / s.Block, Threads: s.Block}
}

func (s BlinkShape) name(op string) string { return fmt.Sprintf("blink%s%dx%d", op, s.Bits, s.Order) }

// Kernels launches the kernels of BlinkSource, of a set that was loaded with it.
type Kernels struct{ Set *kernel.Set }

// Params is room for the arguments of one launch. A caller keeps one per stream.
type Params struct {
	batch  blinkParams
	ranges blinkRangeParams
	build  blinkBuildParams
}

// blinkParams are the arguments of a batch.
type blinkParams struct {
	tree              BlinkMemory
	kinds, keys, vals device.Ptr
	n                 uint32
	_                 uint32
	outcomes          device.Ptr
}

// blinkRangeParams are the arguments of Range.
type blinkRangeParams struct {
	tree       BlinkMemory
	low, high  device.Ptr
	n, limit   uint32
	keys, vals device.Ptr
	counts     device.Ptr
}

// blinkBuildParams are the arguments of Build.
type blinkBuildParams struct {
	tree                  BlinkMemory
	keys, vals            device.Ptr
	n, fill, level, first uint32
	below                 uint32
}

// Batch carries out n operations at once, in no order but that of as many that stand side by side
// as a tile has lanes: gets if get is true, sets if kinds is 0, otherwise by kinds (BlinkOp).
// vals has the values to set, and gets those that were there; outcomes gets a BlinkOutcome for
// each.
func (s Kernels) Batch(st device.Stream, p *Params, t *BlinkMemory, shape BlinkShape, get bool, kinds, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.batch = blinkParams{tree: *t, kinds: kinds, keys: keys, vals: vals, n: uint32(n), outcomes: outcomes}
	op := "Mixed"
	switch {
	case get:
		op = "Get"
	case kinds == 0:
		op = "Set"
	}
	name := shape.name(op)
	if shape.Tile != 0 && shape.Tile != BlinkTile {
		name = fmt.Sprintf("%sby%d", name, shape.Tile)
	}
	return kernel.Start(s.Set, st, name, shape.grid(n), &p.batch)
}

// One is Batch for at most 16 operations, by one tile: Kaczmarek's
// single operation in one launch.
func (s Kernels) One(st device.Stream, p *Params, t *BlinkMemory, shape BlinkShape, kinds, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.batch = blinkParams{tree: *t, kinds: kinds, keys: keys, vals: vals, n: uint32(min(n, BlinkTile)), outcomes: outcomes}
	return kernel.Start(s.Set, st, shape.name("Mixed"), device.Grid{Blocks: 1, Threads: BlinkTile}, &p.batch)
}

// Range copies the entries between each of n pairs of bounds, at most limit
// of each, to keys and vals: those of range i begin at i*limit. counts (u32) gets
// their numbers. The bounds are inclusive.
func (s Kernels) Range(st device.Stream, p *Params, t *BlinkMemory, shape BlinkShape, low, high device.Ptr, n, limit int, keys, vals, counts device.Ptr) error {
	p.ranges = blinkRangeParams{tree: *t, low: low, high: high, n: uint32(n), limit: uint32(limit), keys: keys, vals: vals, counts: counts}
	return kernel.Start(s.Set, st, shape.name("Range"), shape.grid(n), &p.ranges)
}

// Build makes a tree of n ascending, distinct keys, with fill of them a
// node, level by level (the thesis' bulk insert), and returns how many nodes it
// has. Nodes of a level stand side by side, the leaves first; the root is node 0.
func (s Kernels) Build(st device.Stream, p *Params, t *BlinkMemory, shape BlinkShape, keys, vals device.Ptr, n, fill int) (nodes int, err error) {
	if fill < 2 || fill > shape.Order {
		return 0, fmt.Errorf("thesis: %d pairs in a node of %d", fill, shape.Order)
	}
	levels := []int{n}
	for n := n; n > fill; n = levels[len(levels)-1] {
		levels = append(levels, (n-1)/fill+1)
		nodes += levels[len(levels)-1]
	}
	if nodes++; nodes > int(t.Capacity) {
		return 0, fmt.Errorf("%w: %d nodes, room for %d", device.ErrOutOfMemory, nodes, t.Capacity)
	}
	first, below := 1, 0
	for level, n := range levels {
		count := max(1, (n-1)/fill+1)
		if level == len(levels)-1 {
			first = 0
		}
		p.build = blinkBuildParams{tree: *t, keys: keys, vals: vals, n: uint32(n), fill: uint32(fill),
			level: uint32(level), first: uint32(first), below: uint32(below)}
		if err := kernel.Start(s.Set, st, shape.name("Build"), shape.grid(count*BlinkTile), &p.build); err != nil {
			return 0, err
		}
		first, below = first+count, first
	}
	return nodes, errors.Join(st.Fill(t.State, uint32(nodes), 4), st.Fill(t.State+4, 0, 4))
}
