// Package debugger records the steps of many tiles at once on the latched tree of Duong's
// thesis, on the interpreter of kernels: which tile reads, latches, splits and has to try
// again, under a schedule that a seed repeats. The thesis has a visual debugger for that;
// pandoview draws these recordings (docs/view.md).
package debugger

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/papers/thesis"
)

// Limits of a recorded batch on the latched tree.
const (
	MostLatched  = 256        // operations, 16 of which are a tile's
	MostSteps    = 5000       // of a recording, then it ends
	LatchedCodes = 520        // of the index: every second one is in the tree
	mostWork     = 20_000_000 // instructions, then the launch is stopped
	mostMemory   = 16 << 20   // bytes of the interpreter's
)

const (
	latchedOrder = 16 // pairs of a node
	latchedFill  = 14 // of them in use at first, so that a few inserts split
	latchedWarp  = 32 // threads of a block: two tiles
)

// Schedule is the order in which tiles run.
type Schedule string

const (
	Random Schedule = "random" // any lanes that can run
	Frozen Schedule = "frozen" // whoever has just won a latch is often stopped for long, and all others run
)

// Latched is a recording of a batch on the latched tree (docs/latches.md): many
// tiles that search and change one tree at once.
type Latched struct {
	Seed     uint64
	Schedule Schedule
	Name     string // of the kernel
	Tiles    int
	Keys     int // that the tree had before
	Ops      []LatchedOp
	Steps    []LatchedStep
	Turns    int
	Dropped  int    // steps that there was no room for
	Work     uint64 // instructions
}

// LatchedOp is an operation of the batch. 16 that stand side by side are a tile's,
// which carries them out one after the other.
type LatchedOp struct {
	Kind    thesis.BlinkOp
	Key     uint64
	Outcome thesis.BlinkOutcome
	Done    int // number of the step that it ended with; -1 for one that there was no room for
}

// LatchedWhat is the action of a tile in a step.
type LatchedWhat string

const (
	LatchedStart    LatchedWhat = "start"    // the tree before the first turn
	LatchedRead     LatchedWhat = "read"     // begins to read a node
	LatchedHeld     LatchedWhat = "held"     // has read a node that Other holds, and reads again
	LatchedChanged  LatchedWhat = "changed"  // has read a node that changed meanwhile, and reads again
	LatchedMissed   LatchedWhat = "missed"   // did not get a latch, since the node has changed or is held by Other
	LatchedTake     LatchedWhat = "latch"    // has taken a latch
	LatchedFill     LatchedWhat = "fill"     // has filled a new node that nobody sees
	LatchedSplit    LatchedWhat = "split"    // a node's side link leads to Other, a new one that no parent has
	LatchedParent   LatchedWhat = "parent"   // a parent has the new node, and is free again
	LatchedGrow     LatchedWhat = "grow"     // the root's halves are in two new nodes
	LatchedCut      LatchedWhat = "cut"      // the lower half of a split node is free again
	LatchedUndo     LatchedWhat = "undo"     // a latch is given back for nothing
	LatchedWrite    LatchedWhat = "write"    // a leaf was changed and is free again: the operation is done
	LatchedAnswer   LatchedWhat = "answer"   // a read was enough: the operation is done
	LatchedFinished LatchedWhat = "finished" // all tiles are done
)

// Retries reports whether a tile has to do something again.
func (w LatchedWhat) Retries() bool {
	return w == LatchedHeld || w == LatchedChanged || w == LatchedMissed
}

// LatchedStep is something that a tile does.
type LatchedStep struct {
	What  LatchedWhat
	Tile  int // -1 for none
	Op    int // the one that the tile is at
	Node  int
	Other int           // a node or a tile, -1 for none
	Turn  int           // in the schedule
	Ran   []int         // turns of each tile since the step before
	Nodes []LatchedNode // those that have changed since
}

// LatchedNode is a node as it was. The contents of one that is held show when the
// latch is given back.
type LatchedNode struct {
	ID, Level, Used int
	Low, High       uint64
	Next            int // 0 for none
	Children        []int
	Holder          int  // tile that has the latch; -1 for none
	Told            bool // some parent has it, or it is the root
}

// LatchedNodeRoom is how many pairs a node has room for.
const LatchedNodeRoom = latchedOrder

// Latch records a batch of n operations on a latched tree of every second of the given
// codes, which are in order: most insert others of them, around the middle, some look
// a key up or delete it. The batch is the same for every seed; the seed is that of the
// schedule.
func Latch(bits int, codes []uint64, n int, seed uint64, how Schedule) (*Latched, error) {
	opts := []ptx.Option{ptx.Seed(seed), ptx.Memory(mostMemory), ptx.Steps(mostWork)}
	switch how {
	case Random:
	case Frozen:
		opts = append(opts, ptx.FreezeHolders(true))
	default:
		return nil, fmt.Errorf("there is no schedule %q", how)
	}
	if len(codes) == 0 {
		return nil, fmt.Errorf("there are no keys")
	}
	codes = slices.Compact(slices.Sorted(slices.Values(codes))) // those of a damaged file are in any order
	in, ops := latchedBatch(codes[:min(len(codes), LatchedCodes)], min(n, MostLatched))
	w := newLatchWatch(bits, ops)
	w.rec.Seed, w.rec.Schedule, w.rec.Keys = seed, how, len(in)
	dev := ptx.New(append(opts, ptx.Observe(w))...)
	defer dev.Close()
	if err := w.run(dev, in); err != nil {
		return nil, err
	}
	w.rec.Work = dev.Instructions()
	return w.rec, nil
}

// latchedBatch parts codes into those of a tree and a batch of n operations: three of
// five insert a code that is not in it, one looks one up, one deletes one.
func latchedBatch(codes []uint64, n int) (in []uint64, ops []LatchedOp) {
	rng := rand.New(rand.NewPCG(1, 1))
	var out []uint64
	for i, c := range codes {
		if i%2 == 0 {
			in = append(in, c)
		} else {
			out = append(out, c)
		}
	}
	near := func(of []uint64) []uint64 { // n of them in the middle
		lo := max(0, (len(of)-n)/2)
		return of[lo:min(lo+n, len(of))]
	}
	fresh := slices.Clone(near(out))
	rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	old := near(in)
	for range n {
		op := LatchedOp{Kind: thesis.BlinkGet, Key: old[rng.IntN(len(old))], Done: -1}
		switch x := rng.IntN(5); {
		case x < 3 && len(fresh) > 0:
			op.Kind, op.Key, fresh = thesis.BlinkSet, fresh[0], fresh[1:]
		case x == 3:
			op.Kind = thesis.BlinkDelete
		}
		ops = append(ops, op)
	}
	return in, ops
}

// run builds the tree on a device and carries out the batch.
func (w *latchWatch) run(dev *ptx.Device, in []uint64) error {
	set, err := kernel.LoadOnly(dev, thesis.BlinkSource)
	if err != nil {
		return err
	}
	st, err := dev.NewStream()
	if err != nil {
		return err
	}
	ops := w.rec.Ops
	var keys, kinds []byte
	for _, o := range ops {
		keys, kinds = w.append(keys, o.Key), append(kinds, byte(o.Kind))
	}
	var first []byte
	for _, c := range in {
		first = w.append(first, c)
	}
	put := func(b []byte) (at device.Ptr) { // keeps the first error
		if err == nil {
			at, err = dev.Alloc(max(len(b), 4))
		}
		if err == nil && len(b) > 0 {
			err = st.CopyIn(at, b)
		}
		return at
	}
	w.nodes = make([]byte, w.shape.NodeBytes()*(len(in)/4+3*len(ops)+16)) // more than there can be
	tree := thesis.BlinkMemory{
		Nodes: put(w.nodes), State: put(make([]byte, 8)), Capacity: uint32(len(w.nodes) / w.shape.NodeBytes()), How: thesis.BlinkLinks,
	}
	k, v, had := put(first), put(first), put(make([]byte, len(keys)))
	asked, kind, outcomes := put(keys), put(kinds), put(make([]byte, len(ops)))
	if err != nil {
		return err
	}
	params, kernels := new(thesis.Params), thesis.Kernels{Set: set}
	used, err := kernels.Build(st, params, &tree, w.shape, k, v, len(in), latchedFill)
	if err != nil {
		return err
	}
	out := make([]byte, len(ops))
	for _, do := range []func() error{
		func() error { return st.CopyOut(w.nodes, tree.Nodes) },
		st.Synchronize,
		func() error { w.begin(tree.Nodes, used); return nil },
		func() error {
			return kernels.Batch(st, params, &tree, w.shape, false, kind, asked, had, len(ops), outcomes)
		},
		func() error { return st.CopyOut(out, outcomes) },
		st.Synchronize,
	} {
		if err := do(); err != nil {
			return err
		}
	}
	w.emit(LatchedFinished, nil, -1, -1)
	for i, o := range out {
		ops[i].Outcome = thesis.BlinkOutcome(o)
	}
	return nil
}

// append appends a key as it lies in a node.
func (w *latchWatch) append(to []byte, key uint64) []byte {
	if w.shape.Bits == 32 {
		return binary.LittleEndian.AppendUint32(to, uint32(key))
	}
	return binary.LittleEndian.AppendUint64(to, key)
}
