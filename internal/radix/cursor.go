package radix

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Cursor reads entries of a tree one after the other, in either direction, while
// others change it: each entry that it returns is the next one of those that are
// there at that time. The cursor of a snapshot reads the entries of that time.
//
// It knows the nodes on the way to the entry that it has returned last, and their
// words. As long as these are the same, the next entry follows from these nodes.
type Cursor struct {
	t      *Tree
	still  *moment // the snapshot; nil for the tree as it is
	gen    uint64
	top    uint32  // word of the top
	way    []frame // from the root on
	passed []frame // nodes without a further entry that the way led through since the last
	placed bool    // the way leads to the last entry
	failed bool    // something was met that is being changed

	position
	begin position // the position before the last entry
	down  bool
	block []byte // memory for keys
}

// position is where a cursor is.
type position struct {
	pos  string // the next entry is beyond; or from there on
	open bool   // the position itself is outside
	all  bool   // there is no position: from the very first, or last, on
}

// frame is an inner node, its word when the cursor came there, and which of its
// links the way goes on by.
type frame struct {
	node link
	word uint32
	b    int
}

// Cursor returns a cursor over all entries, in ascending order until it is told
// otherwise.
func (t *Tree) Cursor() *Cursor { return &Cursor{t: t, position: position{all: true}} }

// Cursor returns a cursor over all entries of the snapshot.
func (s *Snapshot) Cursor() *Cursor {
	return &Cursor{t: s.tree, still: s.moment, position: position{all: true}}
}

// Move makes Next return the first entry from key on, or down from it; the first
// beyond it where open is true.
func (c *Cursor) Move(key string, open, down bool) {
	c.position, c.down, c.placed = position{pos: key, open: open}, down, false
}

// MoveEnd makes Next return the first entry, or the last where down is true.
func (c *Cursor) MoveEnd(down bool) {
	c.position, c.down, c.placed = position{all: true}, down, false
}

// Undo goes back to before the entry that Next has returned last: the next call
// begins where that one began, even if the tree has changed since.
func (c *Cursor) Undo() { c.position, c.placed = c.begin, false }

// Next returns the next entry, and false if there is none.
func (c *Cursor) Next() (key string, val uint64, ok bool) {
	if c.still != nil {
		return c.next()
	}
	c.t.rw.RLock()
	key, val, ok = c.next()
	c.t.rw.RUnlock()
	c.t.edges.AcquireString(key)
	return key, val, ok
}

// next is Next without a lock.
func (c *Cursor) next() (key string, val uint64, ok bool) {
	for try := 0; ; try++ {
		gen := c.t.Gen()
		if c.placed && !c.t.Current(c.gen) && c.still == nil {
			c.placed = false
		}
		if !c.placed {
			c.gen = gen
		}
		l := c.step()
		if l != 0 {
			val = atomic.LoadUint64(&l.leaf().value)
			key = c.keep(c.t.key(l))
		}
		stall.At("radix: cursor's entry found")
		if c.valid() {
			c.gen, c.passed, c.placed = gen, c.passed[:0], l != 0
			if l == 0 {
				return "", 0, false
			}
			c.begin, c.position = c.position, position{pos: key, open: true}
			return key, val, true
		}
		c.placed = false
		if c.over() {
			return "", 0, false
		}
		simd.Wait(try)
	}
}

// over reports whether the tree or snapshot of the cursor is closed, and its memory
// may be gone.
func (c *Cursor) over() bool {
	if c.still != nil {
		return c.still.closed.Load()
	}
	return c.t.Closed()
}

// keep copies a key. Many share a piece of memory.
func (c *Cursor) keep(key string) string {
	if len(key) == 0 {
		return ""
	}
	if len(key) > cap(c.block)-len(c.block) {
		c.block = make([]byte, 0, max(len(key), min(2*cap(c.block), 4096)))
	}
	at := len(c.block)
	c.block = append(c.block, key...)
	return unsafe.String(&c.block[at], len(key))
}

// valid reports whether all nodes that the last step has read are unchanged.
func (c *Cursor) valid() bool {
	if c.still != nil || mutant.On && mutant.Is("radix: cursor's version") {
		return !c.failed
	}
	if c.failed || atomic.LoadUint32(&c.t.top.word) != c.top {
		return false
	}
	for _, f := range c.way {
		if f.node.header().load() != f.word {
			return false
		}
	}
	for _, f := range c.passed {
		if f.node.header().load() != f.word {
			return false
		}
	}
	return c.t.Current(c.gen)
}

// step returns the next leaf, 0 if there is none.
func (c *Cursor) step() link {
	c.failed = false
	l := c.place()
	if c.failed {
		return 0
	}
	return l
}

// place goes to the next leaf.
func (c *Cursor) place() link {
	if c.placed {
		return c.beside()
	}
	c.way, c.passed = c.way[:0], c.passed[:0]
	var root link
	if c.still != nil {
		root = c.still.root
	} else {
		c.top = atomic.LoadUint32(&c.t.top.word)
		c.failed = c.top&locked != 0
		root = load(&c.t.top.link)
	}
	if c.all {
		return c.first(root)
	}
	return c.seek(root)
}

// push adds a node to the way.
func (c *Cursor) push(l link, b int) {
	word := l.header().load()
	if word&(locked|dead) != 0 && c.still == nil || len(c.way) > 0 && c.way[len(c.way)-1].node.header().depth >= l.header().depth {
		c.failed = true
	}
	c.way = append(c.way, frame{l, word, b})
}

// fetchAll prefetches the targets of all links of a small node: a scan will
// come to all.
func fetchAll(l link) {
	if l.kind() < node48 {
		_, links := sorted(l)
		for _, to := range links {
			fetch(to, "", 0)
		}
	}
}

// fetchAhead prefetches the target of a large node's link a few bytes further on. A
// scan has prefetched those before in earlier steps.
func fetchAhead(l link, b int, down bool) {
	const ahead = 3
	if l.kind() < node48 {
		return
	}
	var to link
	for range ahead {
		if down {
			b, to = atOrBefore(l, b-1)
		} else {
			b, to = atOrAfter(l, b+1)
		}
		if to == 0 {
			return
		}
	}
	fetch(to, "", 0)
}

// first returns the first leaf below a link, in the cursor's direction.
func (c *Cursor) first(l link) link {
	for l.isInner() && !c.failed {
		c.push(l, 0)
		if c.placed {
			fetchAll(l)
		}
		f := &c.way[len(c.way)-1]
		if c.down {
			f.b, l = atOrBefore(l, 255)
		} else {
			f.b, l = atOrAfter(l, -1)
		}
		if l == 0 {
			c.failed = true // no node is without links
		}
	}
	return l
}

// beside returns the leaf beside the end of the way, in the cursor's direction.
func (c *Cursor) beside() link {
	for i := len(c.way) - 1; i >= 0 && !c.failed; i-- {
		f := &c.way[i]
		var l link
		if c.down && f.b >= 0 {
			f.b, l = atOrBefore(f.node, f.b-1)
		} else if !c.down {
			f.b, l = atOrAfter(f.node, f.b+1)
		}
		if l != 0 {
			if c.placed {
				fetchAhead(f.node, f.b, c.down)
			}
			return c.first(l)
		}
		c.passed = append(c.passed, *f)
		c.way = c.way[:i]
	}
	return 0
}

// seek returns the first leaf from the position on, in the cursor's direction. It
// skips compressed paths on the way down, and compares the position with a leaf
// afterwards.
func (c *Cursor) seek(l link) link {
	key := c.pos
	for l.isInner() && !c.failed {
		d := int(l.header().depth)
		if d > len(key) {
			break
		}
		b := simd.ByteAt(key, d)
		c.push(l, b)
		l = child(l, b)
	}
	if c.failed {
		return 0
	}
	return c.settle(l)
}

// settle returns the first leaf from the position on, where the way has led to a link,
// which may be 0.
func (c *Cursor) settle(l link) link {
	below := l
	if n := len(c.way); l == 0 && n > 0 {
		below = c.way[n-1].node
	}
	if below == 0 {
		return 0
	}
	some := anyLeaf(below)
	if some == 0 { // met between two stores of a change
		c.failed = true
		return 0
	}
	k := c.t.key(some)
	at := simd.CommonPrefix(k, c.pos)
	for i, f := range c.way {
		if int(f.node.header().depth) > at {
			// The leaf was found below these.
			c.passed = append(c.passed, c.way[i:]...)
			c.way = c.way[:i]
			return c.beyond(f.node, k, at)
		}
	}
	if l == 0 {
		return c.beside()
	}
	if l.isInner() {
		return c.beyond(l, k, at)
	}
	switch order := strings.Compare(k, c.pos); {
	case order == 0 && !c.open, order > 0 && !c.down, order < 0 && c.down:
		return l
	}
	return c.beside()
}

// beyond returns the first leaf where the keys below a link have the first bytes in
// common with the position, and not the next: all are below it, or all above. k is
// one of them.
func (c *Cursor) beyond(l link, k string, at int) link {
	if simd.ByteAt(k, at) < simd.ByteAt(c.pos, at) == c.down {
		return c.first(l)
	}
	// The node's word need not be checked: its keys begin with other bytes for
	// as long as its parent leads there.
	return c.beside()
}
