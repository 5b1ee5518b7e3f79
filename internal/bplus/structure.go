package bplus

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/pando-index/pando/internal/stall"
)

// boundary says that a leaf begins right above a key.
type boundary[C Code] struct {
	key  C
	leaf uint32
}

// child is an entry of an upper node.
type child[C Code] struct {
	sep   C
	ref   uint32
	count int64
}

// step is an upper node on the way to a key, and which child the way goes on
// to.
type step struct {
	node uint32
	i    int
}

// path returns the way to a key, the root first. The structure is locked.
func (t *Tree[C]) path(key C) []step {
	root := t.root.Load()
	steps := make([]step, 0, 8)
	x := uint32(root)
	for range root >> 32 {
		u := t.upper(x)
		i, _ := slices.BinarySearch(u.seps()[:u.info().children], key)
		i = min(i, int(u.info().children)-1)
		steps = append(steps, step{x, i})
		x = u.refs()[i]
	}
	return steps
}

// addBoundaries tells upper nodes of leaves that have been split off others,
// whose side links lead there already. Where memory fails it is done later.
func (t *Tree[C]) addBoundaries(new []boundary[C]) {
	t.structure.Lock()
	defer t.structure.Unlock()
	if t.Closed() {
		return
	}
	stall.At("held: boundaries come")
	t.pending = append(t.pending, new...)
	t.addPending()
	t.advance()
}

// addPending tells upper nodes of leaves that they do not know of yet, as far as
// there is memory. The structure is locked.
func (t *Tree[C]) addPending() {
	p := t.pending
	if less := func(i, j int) bool { return p[i].key < p[j].key }; !sort.SliceIsSorted(p, less) {
		sort.Slice(p, less) // few, and slices' is 16 kB of code for each type
	}
	for len(t.pending) > 0 {
		n, ok := t.addFirst(t.pending)
		if !ok {
			break
		}
		t.pending = t.pending[n:]
	}
	if len(t.pending) == 0 {
		t.pending = nil
	}
}

// addFirst tells the parent of the first of some leaves, which are in key order,
// of that one and all others that belong to it. It returns how many these are,
// and false if memory fails.
func (t *Tree[C]) addFirst(new []boundary[C]) (n int, ok bool) {
	path := t.path(new[0].key)
	if len(path) == 0 {
		x := uint32(t.root.Load())
		list, n := t.insertBounds(nil, child[C]{^C(0), x, t.counted(x, ^C(0))}, new)
		return n, t.replace(nil, 0, 0, list)
	}
	last := path[len(path)-1]
	list := make([]child[C], 0, fanout+min(len(new), fanout))
	for _, c := range t.children(last.node)[last.i:] {
		var k int
		list, k = t.insertBounds(list, c, new[n:])
		n += k
	}
	end := int(t.upper(last.node).info().children)
	if len(list) == end-last.i { // all known already
		return n, true
	}
	return n, t.replace(path, last.i, end, list)
}

// insertBounds appends a child to a list, cut at the boundaries that lie in it,
// and returns how many of these it has dealt with.
func (t *Tree[C]) insertBounds(list []child[C], c child[C], new []boundary[C]) ([]child[C], int) {
	n := 0
	for n < len(new) && new[n].key < c.sep {
		n++
	}
	if n > 0 {
		counts := t.countedBetween(new[:n], c.sep)
		for i, b := range new[:n] {
			list = append(list, child[C]{b.key, c.ref, c.count - counts[i]})
			c.ref, c.count = b.leaf, counts[i]
		}
	}
	for n < len(new) && new[n].key == c.sep {
		n++
	}
	return append(list, c), n
}

// counted returns how many of the entries in the leaves from x up to high the
// upper nodes know of.
func (t *Tree[C]) counted(x uint32, high C) (n int64) {
	for {
		l := t.leaf(x)
		n += int64(l.info().counted)
		if l.high() >= high {
			return n
		}
		x = l.info().next
	}
}

// countedBetween returns, for each of some leaves, how many of the entries from
// there up to high the upper nodes know of.
func (t *Tree[C]) countedBetween(new []boundary[C], high C) []int64 {
	counts := make([]int64, len(new))
	i := 0
	for x := new[0].leaf; ; {
		if i+1 < len(new) && x == new[i+1].leaf {
			i++
		}
		l := t.leaf(x)
		counts[i] += int64(l.info().counted)
		if l.high() >= high {
			break
		}
		x = l.info().next
	}
	for i := len(new) - 2; i >= 0; i-- {
		counts[i] += counts[i+1]
	}
	return counts
}

// children returns those of an upper node.
func (t *Tree[C]) children(y uint32) []child[C] {
	return t.appendChildren(make([]child[C], 0, fanout+2), y, 0, int(t.upper(y).info().children))
}

// appendChildren appends children [from, to) of an upper node to a list.
func (t *Tree[C]) appendChildren(list []child[C], y uint32, from, to int) []child[C] {
	u := t.upper(y)
	for i := from; i < to; i++ {
		list = append(list, child[C]{u.seps()[i], u.refs()[i], u.counts()[i]})
	}
	return list
}

// replace replaces children [from, to) of the last node of a path by others
// that cover the same keys. Upper nodes are not changed but replaced, up to one
// whose reference to a child can be exchanged for another. It returns false, and
// changes nothing, if memory fails. Without a path, the children are to be a new
// root's.
func (t *Tree[C]) replace(path []step, from, to int, with []child[C]) bool {
	fresh := make([]uint32, 0, 8) // nodes made
	var old []uint32              // nodes replaced
	shrinks := len(with) < to-from
	for {
		if len(path) == 0 {
			root, ok := t.newRoot(with, &fresh, &old)
			if !ok {
				return t.undo(fresh)
			}
			stall.At("held: root built")
			t.root.Store(root)
			break
		}
		last := path[len(path)-1]
		list := t.appendChildren(make([]child[C], 0, fanout+2+len(with)), last.node, 0, from)
		list = append(list, with...)
		list = t.appendChildren(list, last.node, to, int(t.upper(last.node).info().children))
		old = append(old, last.node)
		path = path[:len(path)-1]
		if len(path) == 0 {
			with, from, to = list, 0, 0
			continue
		}
		above := path[len(path)-1]
		from, to = above.i, above.i+1
		if shrinks && len(list) < fanout/4 {
			list, from, to, old = t.join(list, above, old)
		}
		nodes, ok := t.build(list, &fresh)
		if !ok {
			return t.undo(fresh)
		}
		if u := t.upper(above.node); len(nodes) == 1 && to == from+1 && nodes[0].sep == u.seps()[from] {
			stall.At("held: upper node built")
			u.counts()[from] = nodes[0].count
			atomic.StoreUint32(&u.refs()[from], nodes[0].ref)
			break
		}
		with = nodes
	}
	stall.At("held: upper nodes replaced")
	t.noteUppers(fresh)
	for _, y := range old {
		t.retire(uint64(y) | upperRef)
	}
	return true
}

// join adds the children of a neighbour to those of a node that has few. above
// is their parent. It returns which children of the parent are replaced.
func (t *Tree[C]) join(list []child[C], above step, old []uint32) ([]child[C], int, int, []uint32) {
	u := t.upper(above.node)
	switch i := above.i; {
	case i+1 < int(u.info().children):
		y := u.refs()[i+1]
		return append(list, t.children(y)...), i, i + 2, append(old, y)
	case i > 0:
		y := u.refs()[i-1]
		return append(t.children(y), list...), i - 1, i + 1, append(old, y)
	}
	return list, above.i, above.i + 1, old
}

// undo gives back nodes that no other goroutine has seen.
func (t *Tree[C]) undo(fresh []uint32) bool {
	for _, y := range fresh {
		t.uppers.give(y)
	}
	return false
}

// newRoot returns the root over children: one of them where it is the only one,
// else a new node, or more with another above.
func (t *Tree[C]) newRoot(list []child[C], fresh, old *[]uint32) (root uint64, ok bool) {
	height := t.root.Load() >> 32
	if len(*old) == 0 {
		height++ // the children are leaves, and the only one so far was the root
	}
	for len(list) > fanout {
		if list, ok = t.build(list, fresh); !ok {
			return 0, false
		}
		height++
	}
	if len(list) == 1 {
		height--
		for x := list[0].ref; ; {
			if height == 0 || t.upper(x).info().children > 1 || slices.Contains(*fresh, x) {
				return height<<32 | uint64(x), true
			}
			*old = append(*old, x)
			x = t.upper(x).refs()[0]
			height--
		}
	}
	nodes, ok := t.build(list, fresh)
	if !ok {
		return 0, false
	}
	return height<<32 | uint64(nodes[0].ref), true
}

// build makes upper nodes of children, in order: one if they fit, else as few as
// do, about equally full. Where children come in ascending order the nodes left
// behind are to be full, so the last is the one with room.
func (t *Tree[C]) build(list []child[C], fresh *[]uint32) ([]child[C], bool) {
	var nodes []child[C]
	parts := (len(list) + fanout - 1) / fanout
	ascending := parts == 2 && list[len(list)-1].sep == ^C(0) && len(list) <= fanout*7/8+fanout
	for p := range parts {
		from, to := p*len(list)/parts, (p+1)*len(list)/parts
		if ascending {
			from, to = p*(fanout*7/8), min((p+1)*(fanout*7/8), len(list))
			if p == parts-1 {
				to = len(list)
			}
		}
		n, ok := t.buildNode(list[from:to])
		if !ok {
			return nil, false
		}
		*fresh = append(*fresh, n.ref)
		nodes = append(nodes, n)
	}
	return nodes, true
}

// buildNode makes one upper node.
func (t *Tree[C]) buildNode(list []child[C]) (node child[C], ok bool) {
	if !t.tidying && t.room(int64(t.uppers.pool.SlotBytes())) != nil {
		return node, false
	}
	y, _, err := t.uppers.take(false)
	if err != nil {
		return node, false
	}
	u := t.upper(y)
	u.info().children = uint32(len(list))
	last := list[len(list)-1]
	node = child[C]{sep: last.sep, ref: y}
	for i := range fanout {
		c := child[C]{sep: ^C(0), ref: last.ref}
		if i < len(list) {
			c = list[i]
		}
		u.seps()[i], u.counts()[i] = c.sep, c.count
		atomic.StoreUint32(&u.refs()[i], c.ref)
		node.count += c.count
	}
	setIndex[C](u.node)
	return node, true
}
