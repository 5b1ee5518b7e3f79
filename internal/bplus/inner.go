package bplus

import (
	"errors"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
)

// This file is for experiments that change a tree as the HB+-tree paper does
// (package papers/hbplus); the tree itself does not need it.

// ErrStructure is the error for a change that cannot be made in place.
var ErrStructure = errors.New("the leaf has to be split")

// SetInPlace sets the value of a key if its leaf need not be split for it; else
// it changes nothing and returns ErrStructure. It returns the leaf, and whether
// the leaf's separators have changed.
func (t *Tree[C]) SetInPlace(key, val C) (at Node, moved bool, err error) {
	t.rw.Lock()
	defer t.rw.Unlock()
	t.edges.Release(uint64(key))
	defer t.edges.Acquire(uint64(key))
	w := writing[C]{t: t, key: key, inPlace: true}
	for try := 0; ; try++ {
		if !w.find() {
			return at, false, op.ErrClosed
		}
		if w.word&simd.WordBusy != 0 || !w.stable() {
			simd.Wait(try)
			continue
		}
		if done, err := w.put(val, true); done || err != nil {
			return Node{Number: w.x}, w.moved, err
		}
	}
}

// Node is an inner node as the paper has it: an upper node, or the pilot of a
// leaf.
type Node struct {
	Number uint32
	Upper  bool
}

// Around appends the nodes on the way to a key and the neighbours of each, some
// of them more than once: all nodes that a split may have made or changed. The
// caller is the only writer.
func (t *Tree[C]) Around(key C, to []Node) []Node {
	t.structure.Lock()
	defer t.structure.Unlock()
	to = t.way(key, to)
	for _, border := range t.borders(key) {
		to = t.way(border, to)
	}
	return to
}

// way appends the nodes on the way to a key, the root first.
func (t *Tree[C]) way(key C, to []Node) []Node {
	for _, s := range t.path(key) {
		to = append(to, Node{s.node, true})
	}
	x, _, _ := t.seek(key)
	return append(to, Node{Number: x})
}

// borders returns keys just outside each node on the way to a key, on either
// side.
func (t *Tree[C]) borders(key C) (keys []C) {
	for _, s := range t.path(key) {
		seps := t.upper(s.node).seps()
		if s.i > 0 {
			keys = append(keys, seps[s.i-1])
		}
		if seps[s.i] != ^C(0) {
			keys = append(keys, seps[s.i]+1)
		}
	}
	return keys
}

// Inner calls f with every inner node. Nobody may write meanwhile.
func (t *Tree[C]) Inner(f func(n Node)) {
	t.structure.Lock()
	defer t.structure.Unlock()
	root := t.root.Load()
	t.inner(uint32(root), int(root>>32), f)
}

func (t *Tree[C]) inner(x uint32, height int, f func(n Node)) {
	f(Node{x, height > 0})
	if height == 0 {
		return
	}
	u := t.upper(x)
	for _, y := range u.refs()[:u.info().children] {
		t.inner(y, height-1, f)
	}
}

// NodeBytes returns the bytes of a node that a search reads.
func NodeBytes[C Code](n Node) int {
	size := simd.LineBytes + fanout*width[C]()
	if n.Upper {
		size += fanout * 4
	}
	return size
}

// CopyNode copies the parts of a node that a search reads: index line,
// separators, and the references of an upper node. The copy of a node that is
// changed meanwhile is garbage.
func (t *Tree[C]) CopyNode(n Node, dst []byte) {
	at := t.leaf(n.Number).pilot
	if n.Upper {
		at = t.upper(n.Number).node
	}
	line := copy(dst, unsafe.Slice((*byte)(at), simd.LineBytes))
	rest := NodeBytes[C](n) - line
	copy(dst[line:], unsafe.Slice((*byte)(unsafe.Add(at, 2*simd.LineBytes)), rest))
}
