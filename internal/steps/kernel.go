package steps

import (
	"encoding/binary"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/layout"
)

// Limits of a recorded launch.
const (
	MostQueries = 256
	MostImage   = 16 << 20 // bytes of a tree that is copied to the interpreter
	MostTurns   = 20_000
	mostSteps   = 50_000_000 // instructions, then the launch is stopped
)

// Kernel is a recording of a search on the interpreter.
type Kernel struct {
	Seed    uint64
	Names   []string // kernels that were launched, in order
	Threads int      // of a block
	Blocks  int
	Steps   []KernelStep
	Turns   []Turn // the schedule: whose turn it was, one after the other
	Dropped int    // steps and turns that there was no room for
	Ranks   []uint32
	Work    uint64 // instructions
}

// KernelStep is one instruction of some lanes of a warp that accesses memory.
type KernelStep struct {
	Turn        int // index of the turn in the schedule
	Block, Warp int
	Line        int // of the PTX
	What        What
	Lanes       []LaneAt
}

// What is the memory that a step accesses.
type What string

const (
	Queries What = "queries" // reads the keys that are asked for
	Node    What = "node"    // reads a node of the tree
	Places  What = "places"  // reads or writes where queries have come to
	Answers What = "answers" // writes answers
	Strings What = "strings" // compares whole strings
	Other   What = "other"
)

// LaneAt is where a lane is in a step.
type LaneAt struct {
	Lane        int
	Level, Node int  // of a Node
	Query       int  // of all others
	Again       bool // the lane was at this node before: a retry
}

// Turn is a piece of the schedule.
type Turn struct {
	Block, Warp    int
	Lanes, Waiting uint32
}

// region is a piece of device memory.
type region struct {
	what What
	base device.Ptr
	size int
	each int // bytes of a query

	locate func(offset int) (level, node int, ok bool) // of a Node
}

// watch is the observer of a recorded launch.
type watch struct {
	rec     *Kernel
	regions []region
	seen    map[[3]int]int // last node of a lane: by block, warp and lane
}

func (w *watch) Begin(name string, blocks, threads int) {
	w.rec.Names = append(w.rec.Names, name)
	w.rec.Blocks, w.rec.Threads = blocks, threads
}

func (w *watch) Turn(block, warp int, lanes, waiting uint32) {
	if len(w.rec.Turns) >= MostTurns {
		w.rec.Dropped++
		return
	}
	w.rec.Turns = append(w.rec.Turns, Turn{block, warp, lanes, waiting})
}

func (w *watch) Access(a ptx.Access) {
	at, what := w.place(a)
	turn := len(w.rec.Turns) - 1
	if n := len(w.rec.Steps); n > 0 { // lanes at the same instruction are one step
		s := &w.rec.Steps[n-1]
		if s.Turn == turn && s.Block == a.Block && s.Warp == a.Warp && s.Line == a.Line && s.What == what && a.Lane > s.Lanes[len(s.Lanes)-1].Lane {
			s.Lanes = append(s.Lanes, at)
			return
		}
	}
	if len(w.rec.Steps) >= MostEvents {
		w.rec.Dropped++
		return
	}
	w.rec.Steps = append(w.rec.Steps, KernelStep{Turn: turn, Block: a.Block, Warp: a.Warp, Line: a.Line, What: what, Lanes: []LaneAt{at}})
}

// place returns where an access is.
func (w *watch) place(a ptx.Access) (LaneAt, What) {
	at := LaneAt{Lane: a.Lane, Level: -1, Node: -1, Query: -1}
	for _, r := range w.regions {
		offset := int(device.Ptr(a.Addr) - r.base)
		if device.Ptr(a.Addr) < r.base || offset >= r.size {
			continue
		}
		if r.what != Node {
			at.Query = offset / r.each
			return at, r.what
		}
		level, node, ok := r.locate(offset)
		if !ok {
			return at, Other
		}
		at.Level, at.Node = level, node
		lane := [3]int{a.Block, a.Warp, a.Lane}
		id := node<<6 | level
		at.Again = a.Atomic && w.seen[lane] == id+1
		w.seen[lane] = id + 1
		return at, Node
	}
	return at, Other
}

// Search records the search for codes in a tree on the interpreter, under a seed.
func Search(tree layout.OnDevice, look layout.Located, bits int, codes []uint64, seed uint64) (rec *Kernel, err error) {
	im := tree.Image()
	if len(im.Memory) > MostImage {
		return nil, fmt.Errorf("the tree has %d bytes; %d are the most that the interpreter is given", len(im.Memory), MostImage)
	}
	codes = codes[:min(len(codes), MostQueries)]
	rec = &Kernel{Seed: seed}
	w := &watch{rec: rec, seen: map[[3]int]int{}}
	dev := ptx.New(ptx.Seed(seed), ptx.Memory(4*MostImage), ptx.Steps(mostSteps), ptx.Observe(w))
	defer dev.Close()
	set, err := kernel.Load(dev, im.Resident.Kernels()...)
	if err != nil {
		return nil, err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	keys := make([]byte, 0, 8*len(codes))
	for _, c := range codes {
		if bits == 32 {
			keys = binary.LittleEndian.AppendUint32(keys, uint32(c))
		} else {
			keys = binary.LittleEndian.AppendUint64(keys, c)
		}
	}
	n := len(codes)
	l := layout.Launch{
		Set: set, Stream: stream, Params: new(kernel.Params), Bits: bits, N: n, To: im.Depth() + 1,
		Want: layout.WantRanks, Vals: 8 * im.ValSize,
	}
	var base device.Ptr
	for _, room := range []struct {
		at *device.Ptr
		region
	}{
		{&base, region{what: Node, size: len(im.Memory), locate: look.Locate}},
		{&l.Keys, region{what: Queries, size: len(keys), each: bits / 8}},
		{&l.Nodes, region{what: Places, size: 4 * n, each: 4}},
		{&l.Out, region{what: Answers, size: 8 * n, each: 4}},
	} {
		if *room.at, err = dev.Alloc(room.size); err != nil {
			return nil, err
		}
		room.base = *room.at
		w.regions = append(w.regions, room.region)
	}
	return rec, launch(rec, dev, im, base, keys, &l)
}

// launch copies a tree and its queries to the device, and searches.
func launch(rec *Kernel, dev *ptx.Device, im layout.Image, base device.Ptr, keys []byte, l *layout.Launch) error {
	out := make([]byte, 4*l.N)
	for _, do := range []func() error{
		func() error { return im.Resident.Place(base) },
		func() error { return l.Stream.CopyIn(base, im.Memory) },
		func() error { return l.Stream.CopyIn(l.Keys, keys) },
		func() error { return im.Resident.Launch(l) },
		func() error { return l.Stream.CopyOut(out, l.Out) },
		l.Stream.Synchronize,
	} {
		if err := do(); err != nil {
			return err
		}
	}
	for i := range l.N {
		rec.Ranks = append(rec.Ranks, binary.LittleEndian.Uint32(out[4*i:]))
	}
	rec.Work = dev.Instructions()
	return nil
}
