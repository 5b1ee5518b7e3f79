package trie

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
)

// A trie grows from its keys in one pass, from the left to the right. The length of
// the common prefix of two neighbours is the depth of the node that parts them: nodes
// of a greater depth are complete, and become children of others. Spans of keys grow
// apart from each other; nodes that reach over the border of a span are left over as
// sub-trees, and grow together in the end by the same rule. The result depends on the
// keys alone, not on the number of workers.
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
	alike  int   // bytes in common with the key to its left; -1 for none
	wide   *wide // the node that parts it from that, if it is wide: alike is its depth
}

// branching is a node that is not complete.
type branching struct {
	depth int
	kids  []bough // the first alone of a wide node
	wide  *wide
}

// writeNode takes the bytes of a node from one on. first is a key below, of the span
// that grows.
type writeNode func(l link, first, at int, part []byte)

// grower grows nodes.
type grower struct {
	keys   sortedKeys
	counts [trieTypes]uint32 // numbers of the next nodes
	write  writeNode         // nil where nodes are only counted
	open   []branching       // of ascending depths
	last   bough
	some   bool    // there is a last one
	rest   []bough // sub-trees left over
	tally  *tally  // of completed nodes, unless nil
	node   [trieLargest]byte
}

// add adds the next sub-tree.
func (g *grower) add(b bough) {
	if !g.some {
		g.last, g.some = b, true
		return
	}
	for n := len(g.open); n > 0 && g.open[n-1].depth > b.alike; n-- {
		g.complete(int(b.first))
	}
	n := len(g.open)
	switch {
	case n > 0 && g.open[n-1].depth == b.alike:
		g.attach()
	case n == 0 && b.wide != nil && g.last.wide == b.wide: // all that is in its slot
		g.put(b.wide, g.last)
	case n == 0 && g.last.alike >= b.alike: // their node begins further left
		g.rest = append(g.rest, g.last)
	default:
		g.branch(b.alike, b.wide)
		g.attach()
	}
	g.last = b
}

// branch begins a node.
func (g *grower) branch(depth int, w *wide) {
	if n := len(g.open); n < cap(g.open) {
		g.open = g.open[:n+1]
		g.open[n].depth, g.open[n].wide, g.open[n].kids = depth, w, g.open[n].kids[:0]
		return
	}
	g.open = append(g.open, branching{depth: depth, wide: w})
}

// attach makes the last sub-tree a child of the deepest node.
func (g *grower) attach() {
	b := &g.open[len(g.open)-1]
	if b.wide != nil {
		g.put(b.wide, g.last)
	}
	if b.wide == nil || len(b.kids) == 0 {
		b.kids = append(b.kids, g.last)
	}
}

// complete ends the deepest node, before key end: it is the last sub-tree then.
func (g *grower) complete(end int) {
	g.attach()
	b := &g.open[len(g.open)-1]
	g.open = g.open[:len(g.open)-1]
	if b.wide != nil {
		g.completeWide(b.wide, b.kids[0])
		return
	}
	if g.tally != nil {
		g.tally.node(g.keys, b, end)
	}
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
		g.write(linkTo(kind, int(number)), int(first.first), 0, g.form(b, kind, own))
	}
	g.last = bough{linkTo(kind, int(number)), first.first, height + 1, first.alike, first.wide}
}

// put puts a sub-tree into its slot of a wide node. The slots before it that have no
// keys have its rank.
func (g *grower) put(w *wide, b bough) {
	if g.write == nil {
		return
	}
	for h := w.height.Load(); h < b.height && !w.height.CompareAndSwap(h, b.height); {
		h = w.height.Load()
	}
	first, before := int(b.first), -1
	if first > w.lo {
		before = w.slotOf(g.keys, first-1)
	}
	if slot := w.slotOf(g.keys, first); slot >= 0 {
		g.slots(w, first, before+1, slot, link(first))
		g.slots(w, first, slot, slot+1, b.to)
	}
}

// slots sets slots of a wide node.
func (g *grower) slots(w *wide, first, from, to int, l link) {
	links := unsafe.Slice((*link)(unsafe.Pointer(&g.node)), len(g.node)/4)
	for from < to {
		n := min(to-from, len(links))
		for i := range n {
			links[i] = l
		}
		g.write(w.link(), first, len(w.head)+4*from, g.node[:4*n])
		from += n
	}
}

// completeWide ends a wide node.
func (g *grower) completeWide(w *wide, first bough) {
	if h := w.header(); g.write != nil {
		g.write(w.link(), w.lo, 0, w.head)
		g.slots(w, w.lo, w.slotOf(g.keys, w.hi-1)+1, int(h.slots), link(w.hi))
		g.slots(w, w.lo, int(h.slots), (int(w.units())*lineBytes-len(w.head))/4, 0)
	}
	g.last = bough{w.link(), first.first, w.height.Load() + 1, first.alike, first.wide}
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

// finish completes the nodes that do not reach over the right border, before key end:
// bytes is how many the last key has in common with that one, -1 for none. The
// children of those that do are left over.
func (g *grower) finish(end, bytes int) {
	if !g.some {
		return
	}
	for n := len(g.open); n > 0 && g.open[n-1].depth > bytes; n-- {
		g.complete(end)
	}
	for i := range g.open {
		g.rest = append(g.rest, g.open[i].kids...)
	}
	g.rest = append(g.rest, g.last)
}

// growth is the result of the first pass, which the others need.
type growth struct {
	n       int
	keys    keySpans
	workers int
	stop    func() bool // nil for never
	common  int         // bytes that all keys begin with
	tally   tally       // of nodes that reach over spans

	surveying bool // it is the first pass, which counts other things, too
	spans     []growthSpan
	wides     []*wide  // in key order
	head      trieHead // counts of nodes
}

// growthSpan is a span of keys: the numbers of its first nodes, the number of
// neighbours by the bytes they have in common behind those that all have, and the
// sub-trees left over.
type growthSpan struct {
	counts [trieTypes]uint32
	alike  [deepest]uint32
	rest   []bough
	tally  tally
}

// survey goes through the keys of a trie and counts its nodes. It returns
// layout.ErrUnsorted for keys out of order.
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
	g.surveying = true
	if err := g.grow(nil); err != nil {
		return nil, err
	}
	g.surveying = false
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
	if g.surveying {
		g.tally.common, g.tally.hot = g.common, g.hot()
		top.tally = &g.tally
	}
	for i := range g.spans {
		for _, b := range g.spans[i].rest {
			top.add(b)
		}
	}
	top.finish(g.n, -1)
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
		return op.ErrStopped
	}
	s := &g.spans[i]
	lo, hi := i*spanKeys, min((i+1)*spanKeys, g.n)
	keys := g.keys.span(max(lo-1, 0), min(hi+1, g.n))
	w := grower{keys: keys, write: write, rest: s.rest[:0]}
	if write != nil {
		w.counts = s.counts
	}
	if g.surveying {
		s.tally.common, s.tally.hot = g.common, g.hot()
		w.tally = &s.tally
	}
	parted := g.partedFrom(keys, lo)
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
		if g.surveying {
			if k > 0 && bytes < g.common {
				return layout.ErrUnsorted // keys further on are
			}
			if d := bytes - g.common; k > 0 && d < deepest {
				s.alike[d]++
			}
			s.tally.pair(keys, k, bytes)
		}
		b := bough{to: link(leafBit | uint32(k)), first: uint32(k), alike: bytes}
		if b.wide = parted.by(k, bytes); b.wide != nil {
			b.alike = int(b.wide.header().depth)
		}
		w.add(b)
	}
	right := -1
	if hi < g.n {
		right, _ = keys.alike(hi-1, hi)
		if by := parted.by(hi, right); by != nil {
			right = int(by.header().depth)
		}
	}
	w.finish(hi, right)
	if s.rest = w.rest; write == nil {
		s.counts = w.counts
	}
	return nil
}

// parting finds the wide nodes that part neighbours.
type parting struct {
	keys  sortedKeys
	wides []*wide // from the first one on that has a key further on
	key   int     // its slot is
	slot  int
}

// partedFrom returns the wide nodes from key k on.
func (g *growth) partedFrom(keys sortedKeys, k int) parting {
	i, _ := slices.BinarySearchFunc(g.wides, k, func(w *wide, k int) int { return cmp.Compare(w.hi, k+1) })
	return parting{keys: keys, wides: g.wides[i:], key: -1}
}

// by returns the wide node that parts key k from the one before it, nil for none.
// bytes is the length of their common prefix. It is called for ascending keys.
func (p *parting) by(k, bytes int) *wide {
	for len(p.wides) > 0 && p.wides[0].hi <= k {
		p.wides, p.key = p.wides[1:], -1
	}
	if len(p.wides) == 0 || k <= p.wides[0].lo {
		return nil
	}
	w := p.wides[0]
	h := w.header()
	if bytes >= int(h.depth)+int(h.count) {
		return nil
	}
	before := p.slot
	if p.key != k-1 {
		before = w.slotOf(p.keys, k-1)
	}
	p.key, p.slot = k, w.slotOf(p.keys, k)
	if before == p.slot {
		return nil
	}
	return w
}
