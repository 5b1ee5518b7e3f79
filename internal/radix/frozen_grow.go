package radix

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
)

// A trie grows from its keys in one pass, from the left to the right. What two
// neighbours have in common says at which depth the node is that parts them: nodes of
// a greater depth are complete, and become children of others. Spans of keys grow
// apart from each other; what reaches over the border of a span is left over as
// sub-trees, and grows together in the end by the same rule. All that depends on the
// keys alone, not on how many workers there are.
//
// The first pass counts nodes, so that memory can be taken, the second writes them,
// and Check goes through the same to compare.

// spanKeys is the keys that a worker takes at a time.
const spanKeys = 1 << 15

// sortedKeys is keys that a trie grows from.
type sortedKeys interface {
	// alike returns how many bytes keys i and j begin with alike, and -1, 0 or 1 for a
	// key i that is below the other, equal, or above.
	alike(i, j int) (bytes, order int)
	// byteAt returns a byte of key i, -1 if it ends there.
	byteAt(i, depth int) int
}

// keySpans is keys that can be read a span at a time.
type keySpans interface {
	sortedKeys
	// span returns keys [lo, hi), numbered as all are.
	span(lo, hi int) sortedKeys
}

// bough is a sub-tree, or a leaf, whose parent is not complete.
type bough struct {
	to     link
	first  uint32
	height uint32
	alike  int // bytes in common with what is left of it; -1 for nothing there
}

// branching is a node that is not complete.
type branching struct {
	depth int
	kids  []bough
}

// writeNode takes a node of a type under its number.
type writeNode func(kind int, number uint32, node []byte)

// grower grows nodes.
type grower struct {
	keys   sortedKeys
	counts [trieTypes]uint32 // numbers of the next nodes
	write  writeNode         // nil where nodes are only counted
	open   []branching       // of ascending depths
	last   bough
	some   bool    // there is a last one
	rest   []bough // what is left over
	node   [trieLargest]byte
}

// add adds the next sub-tree.
func (g *grower) add(b bough) {
	if !g.some {
		g.last, g.some = b, true
		return
	}
	for n := len(g.open); n > 0 && g.open[n-1].depth > b.alike; n-- {
		g.complete()
	}
	n := len(g.open)
	switch {
	case n > 0 && g.open[n-1].depth == b.alike:
		g.attach()
	case n == 0 && g.last.alike >= b.alike: // their node begins further left
		g.rest = append(g.rest, g.last)
	default:
		g.branch(b.alike)
		g.attach()
	}
	g.last = b
}

// branch begins a node.
func (g *grower) branch(depth int) {
	if n := len(g.open); n < cap(g.open) {
		g.open = g.open[:n+1]
		g.open[n].depth, g.open[n].kids = depth, g.open[n].kids[:0]
		return
	}
	g.open = append(g.open, branching{depth: depth})
}

// attach makes the last sub-tree a child of the deepest node.
func (g *grower) attach() {
	b := &g.open[len(g.open)-1]
	b.kids = append(b.kids, g.last)
}

// complete ends the deepest node: it is the last sub-tree then.
func (g *grower) complete() {
	g.attach()
	b := &g.open[len(g.open)-1]
	g.open = g.open[:len(g.open)-1]
	first, height, children := b.kids[0], uint32(0), len(b.kids)
	for _, k := range b.kids {
		height = max(height, k.height)
	}
	own := g.keys.byteAt(int(first.first), b.depth) < 0
	if own {
		children--
	}
	kind := trieType(children)
	number := g.counts[kind]
	g.counts[kind]++
	if g.write != nil {
		g.write(kind, number, g.form(b, kind, own))
	}
	g.last = bough{linkTo(kind, int(number)), first.first, height + 1, first.alike}
}

// form returns a node's bytes.
func (g *grower) form(b *branching, kind int, own bool) []byte {
	f, kids := trieForms[kind], b.kids
	node := g.node[:f.size]
	clear(node)
	h := (*trieNode)(unsafe.Pointer(&node[0]))
	h.first, h.depth = kids[0].first, uint32(b.depth)
	if own {
		h.own, kids = 1, kids[1:]
	}
	links := unsafe.Slice((*link)(unsafe.Pointer(&node[f.links])), f.most)
	if kind == trie256 {
		for _, k := range kids {
			links[g.keys.byteAt(int(k.first), b.depth)] = k.to
		}
		return node
	}
	h.count = uint8(len(kids))
	for i, k := range kids {
		node[trieKeysAt+i], links[i] = byte(g.keys.byteAt(int(k.first), b.depth)), k.to
	}
	return node
}

// finish completes the nodes that do not reach over the right border: bytes is what
// the last key has in common with the one behind it, -1 for none. The children of
// those that do are left over.
func (g *grower) finish(bytes int) {
	if !g.some {
		return
	}
	for n := len(g.open); n > 0 && g.open[n-1].depth > bytes; n-- {
		g.complete()
	}
	for i := range g.open {
		g.rest = append(g.rest, g.open[i].kids...)
	}
	g.rest = append(g.rest, g.last)
}

// growth is what the first pass finds, and the others need.
type growth struct {
	n       int
	keys    keySpans
	workers int
	stop    func() bool // nil for never
	common  int         // bytes that all keys begin with
	spans   []growthSpan
	head    trieHead // counts of nodes
}

// growthSpan is a span of keys: the numbers of its first nodes, how many neighbours
// have so many bytes in common, behind those that all have, and what is left over.
type growthSpan struct {
	counts [trieTypes]uint32
	alike  [deepest]uint32
	rest   []bough
}

// survey goes through the keys of a trie and counts its nodes. Keys out of order are
// layout.ErrUnsorted.
func survey(n int, keys keySpans, workers int, stop func() bool) (*growth, error) {
	g := &growth{n: n, keys: keys, workers: par.Workers(workers), stop: stop}
	if int64(n) >= leafBit {
		return nil, layout.ErrTooLarge
	}
	if n > 0 {
		var order int
		if g.common, order = keys.alike(0, n-1); order > 0 {
			return nil, layout.ErrUnsorted
		}
	}
	g.spans = make([]growthSpan, (n+spanKeys-1)/spanKeys)
	if err := g.grow(nil); err != nil {
		return nil, err
	}
	return g, nil
}

// grow grows all nodes: it counts them where write is nil.
func (g *growth) grow(write writeNode) error {
	var bad atomic.Pointer[error]
	par.Run(g.workers, len(g.spans), par.Func(func(i int) {
		if bad.Load() == nil {
			if err := g.growSpan(i, write); err != nil {
				bad.Store(&err)
			}
		}
	}))
	if err := bad.Load(); err != nil {
		return *err
	}
	top := grower{keys: g.keys, write: write}
	for i := range g.spans {
		for _, b := range g.spans[i].rest {
			top.add(b)
		}
	}
	top.finish(-1)
	if write == nil {
		return g.number(top.counts)
	}
	if g.head.root = 0; top.some {
		g.head.root, g.head.height = top.last.to, top.last.height
	}
	return nil
}

// number deals out the numbers of nodes: the upper ones come first.
func (g *growth) number(upper [trieTypes]uint32) error {
	next := [trieTypes]uint64{}
	for kind, n := range upper {
		next[kind] = uint64(n)
	}
	for i := range g.spans {
		s := &g.spans[i]
		for kind, n := range s.counts {
			s.counts[kind] = uint32(next[kind])
			if next[kind] += uint64(n); next[kind] > numberMax {
				return layout.ErrTooLarge
			}
		}
	}
	for kind, n := range next {
		g.head.counts[kind] = uint32(n)
	}
	return nil
}

// growSpan grows the nodes of a span.
func (g *growth) growSpan(i int, write writeNode) error {
	if g.stop != nil && g.stop() {
		return layout.ErrStopped
	}
	s := &g.spans[i]
	lo, hi := i*spanKeys, min((i+1)*spanKeys, g.n)
	keys := g.keys.span(max(lo-1, 0), min(hi+1, g.n))
	w := grower{keys: keys, write: write, rest: s.rest[:0]}
	if write != nil {
		w.counts = s.counts
	}
	for k := lo; k < hi; k++ {
		bytes, order := -1, -1
		if k > 0 {
			bytes, order = keys.alike(k-1, k)
		}
		switch {
		case order > 0:
			return layout.ErrUnsorted
		case order == 0:
			continue
		case int64(bytes) > math.MaxUint32:
			return layout.ErrTooLong
		}
		if d := bytes - g.common; k > 0 && d < deepest && write == nil {
			if d < 0 {
				return layout.ErrUnsorted // keys further on are
			}
			s.alike[d]++
		}
		w.add(bough{to: link(leafBit | uint32(k)), first: uint32(k), alike: bytes})
	}
	right := -1
	if hi < g.n {
		right, _ = keys.alike(hi-1, hi)
	}
	w.finish(right)
	if s.rest = w.rest; write == nil {
		s.counts = w.counts
	}
	return nil
}
