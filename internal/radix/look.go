package radix

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// Bounds of a look. It leaves out the nodes below them, and says so.
const (
	mostLooked  = 1 << 19 // inner nodes that are visited
	mostLevels  = 40      // of inner nodes
	mostShown   = 256     // bytes of a key that are copied: keys may be of any length
	mostPath    = 40      // bytes of a path that are shown whole, and
	endOfPath   = 32      // how many of a longer one
	lookTries   = 8
	moreVisited = 3 // nodes without a level that the way of a key names
)

// Look returns the tree, level by level: a level is the inner nodes that are as many
// links away from the root, and the last one all leaves. It takes some ten
// milliseconds per million entries. Nobody waits for it: it is repeated where nodes
// were reused meanwhile. Beside writers it need not be of one moment.
func (t *Tree) Look() layout.Look {
	t.whenCounted(func(link) {})
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	for try := 0; ; try++ {
		gen := t.Gen()
		k := lookFrom(t, load(&t.top.link), t.Len())
		if k.live = true; t.Current(gen) || try == lookTries || t.Closed() {
			return k
		}
	}
}

// Look returns the snapshot, level by level.
func (s *Snapshot) Look() layout.Look { return lookFrom(s.tree, s.counted(), s.Len()) }

// look is the inner nodes of a tree, level by level and in order.
type look struct {
	t      *Tree
	root   link
	n      int
	live   bool
	levels [][]placed
	types  [inners]struct{ nodes, children int }
	cut    bool // there are more nodes, below
}

// placed is an inner node, the entries below it, and its first child on the next
// level.
type placed struct {
	node                  link
	first, entries, child uint32
}

// lookFrom looks at all below a link, n entries.
func lookFrom(t *Tree, root link, n int) *look {
	k := &look{t: t, root: root, n: n}
	var here []placed
	if root.isInner() {
		here = []placed{{node: root, entries: uint32(k.n)}}
	}
	total := 0
	for len(here) > 0 {
		if total += len(here); total > mostLooked || len(k.levels) == mostLevels {
			k.cut = true
			break
		}
		below := k.below(here, mostLooked-total)
		k.levels = append(k.levels, here)
		here = below
	}
	return k
}

// below returns the inner children of nodes, about as many as may be at most.
func (k *look) below(here []placed, most int) (out []placed) {
	for i := range here {
		p := &here[i]
		p.child = uint32(len(out))
		k.types[p.node.kind()].nodes++
		k.types[p.node.kind()].children += k.used(p.node)
		if len(out) > most {
			continue
		}
		first, end := p.first, p.first+p.entries
		k.t.children(p.node, func(_ int, to link) bool {
			n := uint32(known(to))
			if to.isInner() && first < end {
				out = append(out, placed{node: to, first: first, entries: min(n, end-first)})
			}
			first += n
			return true
		})
	}
	return out
}

// known returns the entries below a link, as far as they are counted: nodes that
// writers have changed meanwhile are not.
func known(l link) int64 {
	n, _ := entriesOf(l)
	return n
}

// children calls f with each link of an inner node and its byte, -1 for the key that
// ends there, until f returns false.
func (t *Tree) children(l link, f func(b int, to link) bool) {
	for b, to := atOrAfter(l, -1); to != 0 && f(b, to); b, to = atOrAfter(l, b+1) {
	}
}

// used returns the number of an inner node's links, within bounds even for a late
// reader.
func (k *look) used(l link) int { return min(l.header().children(), capacity(l.kind())) }

// typeName returns the name of an inner node's type.
func typeName(kind int) string { return fmt.Sprint("node ", capacity(kind)) }

func (k *look) Levels() (out []layout.Level) {
	for _, nodes := range k.levels {
		out = append(out, layout.Level{Name: "inner", Nodes: len(nodes)})
	}
	return append(out, layout.Level{Name: "leaves", Nodes: k.n, Room: 1})
}

// Types returns the inner nodes by type, those that the look has come to.
func (k *look) Types() (out []layout.Type) {
	for kind, c := range k.types {
		if c.nodes > 0 {
			out = append(out, layout.Type{
				Name: typeName(kind), Nodes: c.nodes, Bytes: int64(c.nodes) * int64(sizeOf(kind)), Used: c.children, Room: c.nodes * capacity(kind),
			})
		}
	}
	return out
}

func (k *look) Node(level, i int) layout.Node {
	if level == len(k.levels) {
		return layout.Node{First: i, End: i + 1, Link: -1, Used: 1, Room: 1, Entry: i, Entries: 1}
	}
	p := k.levels[level][i]
	word := p.node.header().load()
	n := layout.Node{
		First: int(p.first), End: int(p.first + p.entries), Entry: int(p.first), Entries: int(p.entries), Link: -1,
		Used: k.used(p.node), Room: capacity(p.node.kind()), Name: typeName(p.node.kind()), Version: uint64(word / nextSeq),
	}
	if k.live {
		n.State = stateOf(word)
	}
	n.Child, n.Children = int(p.first), int(p.entries) // leaves
	if level+1 < len(k.levels) {
		next := len(k.levels[level+1])
		if i+1 < len(k.levels[level]) {
			next = int(k.levels[level][i+1].child)
		}
		n.Child, n.Children = int(p.child), next-int(p.child)
	}
	return n
}

func stateOf(word uint32) layout.State {
	switch {
	case word&dead != 0:
		return layout.Dead
	case word&locked != 0:
		return layout.Locked
	}
	return layout.Free
}

func (k *look) Over(level, i int) int {
	if level == len(k.levels) {
		return i
	}
	nodes := k.levels[level]
	return max(0, sort.Search(len(nodes), func(j int) bool { return int(nodes[j].first) > i })-1)
}

func (k *look) Inside(level, i int) layout.Inside {
	if level == len(k.levels) {
		return k.insideLeaf(i)
	}
	k.t.rw.RLock()
	defer k.t.rw.RUnlock()
	l := k.levels[level][i].node
	depth := int(l.header().depth)
	path := k.t.key(anyLeaf(l))
	path = strings.Clone(path[:min(len(path), depth)])
	in := layout.Inside{Notes: []string{
		fmt.Sprintf("A %s of %d bytes. The keys below it have their first %d bytes in common, and the next one tells them apart.", typeName(l.kind()), sizeOf(l.kind()), depth),
	}}
	k.t.children(l, func(b int, _ link) bool {
		in.Keys = append(in.Keys, order.Probe{Text: pathTo(path, b)})
		return true
	})
	if k.cut && level == len(k.levels)-1 {
		in.Notes = append(in.Notes, "The tree has more levels; they are left out, since there are too many nodes to look at.")
	}
	return in
}

// pathTo returns the prefix of keys that go on by a byte; the end of it, if it is
// long.
func pathTo(path string, b int) string {
	if len(path) > mostPath {
		path = "…" + path[len(path)-endOfPath:]
	}
	if b >= 0 {
		path += string([]byte{byte(b)})
	}
	return path
}

// insideLeaf returns the key of entry i.
func (k *look) insideLeaf(i int) layout.Inside {
	k.t.rw.RLock()
	defer k.t.rw.RUnlock()
	in := layout.Inside{Entries: true}
	root := k.root
	if k.live {
		root = load(&k.t.top.link)
	}
	l, _ := atRank(root, int64(i))
	if !l.isLeaf() || i < 0 || i >= k.n { // fewer entries than there were
		return in
	}
	key := k.t.key(l)
	in.Keys = []order.Probe{{Text: strings.Clone(key[:min(len(key), mostShown)])}}
	in.Notes = []string{fmt.Sprintf("A leaf of %d bytes, with a key of %d.", sizeOf(l.class()), len(key))}
	return in
}

func (k *look) Way(key order.Probe) (way []layout.Visit) {
	k.t.rw.RLock()
	defer k.t.rw.RUnlock()
	short := link(0)
	if k.live {
		to, _ := k.t.short.Load().Enter(key.Text)
		short = link(to)
	}
	last, more := layout.Visit{Level: len(k.levels)}, []string(nil)
	at := 0
	for l, level := k.root, 0; l.isInner(); level++ {
		next, slot, child := k.step(l, key.Text)
		if level < len(k.levels) {
			v := layout.Visit{Level: level, Node: at, Slot: slot}
			if l == short {
				v.Note = "a lookup begins here, by a shortcut"
			}
			way = append(way, v)
			at = min(int(k.levels[level][at].child)+child, k.lastOf(level+1))
		} else if more = append(more, typeName(l.kind())); len(more) == mostLevels {
			break // a late reader may go in circles
		}
		l = next
	}
	if len(more) > 0 {
		last.Note = fmt.Sprintf("%d nodes more lead here, which have no level of their own: %s", len(more), strings.Join(more[:min(len(more), moreVisited)], ", "))
		if len(more) > moreVisited {
			last.Note += ", …"
		}
	}
	rank, _ := k.t.rank(k.root, key.Text, false)
	last.Node = max(0, min(int(rank), k.n-1))
	leaf, _ := atRank(k.root, int64(last.Node))
	if found := k.t.key(leaf); found == key.Text {
		last.Found = true
	} else if found < key.Text {
		last.Slot = 1
	}
	return append(way, last)
}

// lastOf returns the last node of a level, if there is such a level.
func (k *look) lastOf(level int) int {
	if level >= len(k.levels) {
		return 0
	}
	return len(k.levels[level]) - 1
}

// step returns the link by which a key goes on, its number among the links of a
// node, and that among the links that lead to inner nodes.
func (k *look) step(l link, key string) (next link, slot, child int) {
	depth := int(l.header().depth)
	if depth > len(key) {
		return 0, 0, 0
	}
	k.t.children(l, func(b int, to link) bool {
		if b >= simd.ByteAt(key, depth) {
			if b == simd.ByteAt(key, depth) {
				next = to
			}
			return false
		}
		slot++
		if to.isInner() {
			child++
		}
		return true
	})
	return next, slot, child
}

// Pulse returns the tree's counts, and a sample of its inner nodes evenly over the
// keys. Writers pay nothing for it: a node's word counts its changes anyway.
func (t *Tree) Pulse(sample int) layout.Pulse {
	k := t.Look().(*look)
	p := layout.Pulse{
		Entries: int64(k.n), Bytes: t.Bytes(), Kept: t.Kept(), Leaves: k.n, Height: len(k.levels), Epoch: t.Epoch(), Generation: t.Gen(),
	}
	for _, nodes := range k.levels {
		p.Uppers += len(nodes)
	}
	t.rw.RLock()
	defer t.rw.RUnlock()
	for i := range min(sample, k.n) {
		if l := lastInner(k.root, int64(i)*int64(k.n)/int64(min(sample, k.n))); l != 0 {
			word := l.header().load()
			p.Sample = append(p.Sample, layout.Beat{ID: uint32(l), Version: uint64(word / nextSeq), Used: k.used(l), State: stateOf(word)})
		}
	}
	return p
}

// lastInner returns the inner node above entry i; 0 if there is none.
func lastInner(l link, i int64) (last link) {
	for depth := 0; l.isInner() && depth < mostLevels; depth++ {
		last = l
		b, next := -1, link(0)
		for b, next = atOrAfter(l, b); next != 0; b, next = atOrAfter(l, b+1) {
			n := known(next)
			if i < n {
				break
			}
			i -= n
		}
		l = next
	}
	return last
}
