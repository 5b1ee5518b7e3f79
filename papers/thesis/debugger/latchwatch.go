package debugger

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/papers/thesis"
)

// latchWatch makes steps of the reads and writes of tiles in the nodes of a latched
// tree (blink.h has the bytes). It keeps a copy of the nodes and looks at three
// words of each:
//
//   - The word is read twice by each lane, and a node was read as it is if all lanes
//     have seen the same without a latch. A compare-and-swap takes the latch, a store
//     gives it back. A store by a tile that does not hold it begins a new node.
//   - The side link of a node that is held leads to a new one: a split.
//   - The children of a node count when its latch is given back.
//
// Memory is not weak in these launches, so that every tile reads the same as the
// copy.
type latchWatch struct {
	rec   *Latched
	shape thesis.BlinkShape
	base  device.Ptr
	nodes []byte // a copy of the device's
	on    bool   // the batch runs
	tiles []*tile
	seen  map[int]*LatchedNode
	dirty map[int]bool
	turns []int // of each tile since the last step
}

// tile is the state of a tile.
type tile struct {
	number  int
	op, end int // operation, and behind the last one
	lanes   [thesis.BlinkTile]glance
	closed  int   // lanes that have read the word of the node a second time
	held    []int // nodes
	fresh   []int // nodes that it has filled since it holds one
}

// glance is a lane's read of a node, between its two looks at the word.
type glance struct {
	open bool
	node int
	word uint64
	good bool
}

const (
	latchBit  = 1
	highAt    = 8
	nextAt    = 16
	lowAt     = 24
	blinkHead = 32
)

func newLatchWatch(bits int, ops []LatchedOp) *latchWatch {
	w := &latchWatch{
		rec:   &Latched{Ops: ops, Tiles: (len(ops) + thesis.BlinkTile - 1) / thesis.BlinkTile},
		shape: thesis.BlinkShape{Bits: bits, Order: latchedOrder, Block: latchedWarp},
		seen:  map[int]*LatchedNode{}, dirty: map[int]bool{},
	}
	for i := range w.rec.Tiles {
		w.tiles = append(w.tiles, &tile{number: i, op: i * thesis.BlinkTile, end: min((i+1)*thesis.BlinkTile, len(ops))})
	}
	w.turns = make([]int, w.rec.Tiles)
	return w
}

// begin is called when the tree was built, with its nodes.
func (w *latchWatch) begin(base device.Ptr, used int) {
	w.base, w.on = base, true
	for i := range used {
		w.decode(i)
	}
	w.told()
	w.emit(LatchedStart, nil, -1, -1)
}

func (w *latchWatch) Begin(name string, _, _ int) { w.rec.Name = strings.TrimPrefix(name, "pando_") }

func (w *latchWatch) Turn(block, warp int, lanes, _ uint32) {
	if !w.on {
		return
	}
	w.rec.Turns++
	for half := range 2 {
		if i := w.tileOf(block, warp, half*thesis.BlinkTile); i < len(w.tiles) && lanes>>(half*thesis.BlinkTile)&(1<<thesis.BlinkTile-1) != 0 {
			w.turns[i]++
		}
	}
}

func (w *latchWatch) tileOf(block, warp, lane int) int {
	return (block*latchedWarp + warp*32 + lane) / thesis.BlinkTile
}

func (w *latchWatch) Access(a ptx.Access) {
	offset := int(device.Ptr(a.Addr) - w.base)
	if !w.on || device.Ptr(a.Addr) < w.base || offset >= len(w.nodes) {
		return
	}
	size := w.shape.NodeBytes()
	t, node, at := w.tiles[w.tileOf(a.Block, a.Warp, a.Lane)], offset/size, offset%size
	if !a.Write {
		if at == 0 {
			w.look(t, a.Lane%thesis.BlinkTile, node)
		}
		return
	}
	was := w.word(node)
	if a.Bytes == 4 {
		binary.LittleEndian.PutUint32(w.nodes[offset:], uint32(a.Value))
	} else {
		binary.LittleEndian.PutUint64(w.nodes[offset:], a.Value)
	}
	switch {
	case at == 0 && a.Atomic:
		w.swap(t, node, was, a.Value)
	case at == 0:
		w.store(t, node, was, a.Value)
	case at == nextAt && w.holds(t, node):
		n := w.seen[node]
		n.Next, n.High = int(uint32(a.Value)), w.key(node, highAt)
		w.dirty[node] = true
		w.emit(LatchedSplit, t, node, n.Next)
	}
}

// look is a lane's first or second read of a node's word.
func (w *latchWatch) look(t *tile, lane, node int) {
	g := &t.lanes[lane]
	word := w.word(node)
	if !g.open {
		*g = glance{open: true, node: node, word: word}
		if lane == 0 {
			w.emit(LatchedRead, t, node, -1)
		}
		return
	}
	g.open, g.good = false, g.word == word && word&latchBit == 0
	if t.closed++; t.closed < thesis.BlinkTile {
		return
	}
	t.closed = 0
	good, held := true, false
	for _, g := range t.lanes {
		good = good && g.good && g.word == t.lanes[0].word
		held = held || g.word&latchBit != 0
	}
	switch by := w.seen[node].Holder; {
	case good:
		w.answered(t, node)
	case held && by >= 0:
		w.emit(LatchedHeld, t, node, by)
	default:
		w.emit(LatchedChanged, t, node, -1)
	}
}

// answered ends an operation for which it was enough to read a node.
func (w *latchWatch) answered(t *tile, node int) {
	n := w.seen[node]
	if t.op == t.end || n.Level > 0 {
		return
	}
	op := &w.rec.Ops[t.op]
	if op.Key < n.Low || op.Key > n.High || op.Kind == thesis.BlinkSet || op.Kind == thesis.BlinkDelete && w.has(node, op.Key) {
		return
	}
	w.done(t, LatchedAnswer, node)
}

// swap is a try to take a latch.
func (w *latchWatch) swap(t *tile, node int, was, now uint64) {
	n := w.seen[node]
	if was == now {
		w.emit(LatchedMissed, t, node, n.Holder)
		return
	}
	n.Holder, t.held = t.number, append(t.held, node)
	w.dirty[node] = true
	w.emit(LatchedTake, t, node, -1)
}

// store is a new word: a latch is given back, or there is a new node.
func (w *latchWatch) store(t *tile, node int, was, now uint64) {
	if !w.holds(t, node) {
		t.fresh = append(t.fresh, node)
		w.decode(node)
		w.emit(LatchedFill, t, node, -1)
		return
	}
	before := *w.seen[node]
	t.held = slices.DeleteFunc(t.held, func(x int) bool { return x == node })
	fresh := t.fresh
	if len(t.held) == 0 {
		t.fresh = nil
	}
	w.decode(node)
	after := w.seen[node]
	switch {
	case after.Level > before.Level:
		w.told()
		w.emit(LatchedGrow, t, node, -1)
	case after.Level > 0 && after.Used > before.Used:
		w.told()
		w.emit(LatchedParent, t, node, fresh[0])
	case len(fresh) > 0:
		w.emit(LatchedCut, t, node, -1)
	case now == was&^latchBit:
		w.emit(LatchedUndo, t, node, -1)
	default:
		w.done(t, LatchedWrite, node)
	}
}

// done ends the operation that a tile is at.
func (w *latchWatch) done(t *tile, what LatchedWhat, node int) {
	op := t.op
	w.emit(what, t, node, -1)
	if t.op < t.end {
		if n := len(w.rec.Steps); w.rec.Dropped == 0 {
			w.rec.Ops[op].Done = n - 1
		}
		t.op++
	}
}

// emit keeps a step.
func (w *latchWatch) emit(what LatchedWhat, t *tile, node, other int) {
	if len(w.rec.Steps) >= MostSteps {
		w.rec.Dropped++
		return
	}
	s := LatchedStep{What: what, Tile: -1, Op: -1, Node: node, Other: other, Turn: max(0, w.rec.Turns-1), Ran: slices.Clone(w.turns)}
	if t != nil {
		s.Tile, s.Op = t.number, min(t.op, t.end-1)
	}
	for _, id := range slices.Sorted(maps.Keys(w.dirty)) {
		n := *w.seen[id]
		n.Children = slices.Clone(n.Children)
		s.Nodes = append(s.Nodes, n)
	}
	clear(w.dirty)
	clear(w.turns)
	w.rec.Steps = append(w.rec.Steps, s)
}

func (w *latchWatch) holds(t *tile, node int) bool { return slices.Contains(t.held, node) }

// decode sets the shown state of a node from its bytes.
func (w *latchWatch) decode(node int) {
	word := w.word(node)
	n := &LatchedNode{
		ID: node, Level: int(word >> 1 & 31), Used: min(int(word>>6&1023), latchedOrder), Holder: -1,
		Low: w.key(node, lowAt), High: w.key(node, highAt), Next: int(binary.LittleEndian.Uint32(w.at(node, nextAt))),
	}
	if was := w.seen[node]; was != nil {
		n.Told = was.Told
	}
	for i := range n.Used {
		if n.Level > 0 {
			n.Children = append(n.Children, int(uint32(w.key(node, blinkHead+(latchedOrder+i)*w.shape.Bits/8))))
		}
	}
	w.seen[node], w.dirty[node] = n, true
}

// told notes which nodes have a parent.
func (w *latchWatch) told() {
	known := map[int]bool{0: true}
	for _, n := range w.seen {
		for _, c := range n.Children {
			known[c] = true
		}
	}
	for id, n := range w.seen {
		if n.Told != known[id] {
			n.Told, w.dirty[id] = known[id], true
		}
	}
}

// has reports whether a leaf has a key.
func (w *latchWatch) has(node int, key uint64) bool {
	for i := range w.seen[node].Used {
		if w.key(node, blinkHead+i*w.shape.Bits/8) == key {
			return true
		}
	}
	return false
}

func (w *latchWatch) at(node, offset int) []byte { return w.nodes[node*w.shape.NodeBytes()+offset:] }

func (w *latchWatch) word(node int) uint64 { return binary.LittleEndian.Uint64(w.at(node, 0)) }

func (w *latchWatch) key(node, offset int) uint64 {
	if w.shape.Bits == 32 {
		return uint64(binary.LittleEndian.Uint32(w.at(node, offset)))
	}
	return binary.LittleEndian.Uint64(w.at(node, offset))
}
