package implicit

import (
	"slices"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// Look returns the tree, level by level: all of it follows from the numbers of
// nodes, and nothing is read but keys.
func (t *Tree[C]) Look() layout.Look { return look[C]{t} }

type look[C simd.Code] struct{ t *Tree[C] }

// nodes returns the number of nodes of a level.
func (k look[C]) nodes(level int) int {
	if level >= len(k.t.counts) {
		return k.t.leaves
	}
	return k.t.counts[level]
}

// under returns the number of leaves below a node of a level that is full.
func (k look[C]) under(level int) int {
	n := 1
	for range len(k.t.counts) - level {
		n *= k.t.cfg.Fanout
	}
	return n
}

func (k look[C]) Levels() []layout.Level {
	var out []layout.Level
	for _, n := range k.t.counts {
		out = append(out, layout.Level{Name: "inner", Nodes: n, Bytes: simd.LineBytes, Room: k.t.cfg.Fanout - 1})
	}
	return append(out, layout.Level{Name: "leaves", Nodes: k.t.leaves, Bytes: simd.LineBytes, Room: k.t.perLeaf()})
}

func (k look[C]) Node(level, i int) layout.Node {
	under, per, entries := k.under(level), k.t.perLeaf(), k.t.Len()
	n := layout.Node{First: i * under, End: min((i+1)*under, k.t.leaves), Link: -1}
	n.Entry = min(n.First*per, entries)
	n.Entries = min(n.End*per, entries) - n.Entry
	if level == len(k.t.counts) {
		n.Used, n.Room = n.Entries, per
		return n
	}
	f := k.t.cfg.Fanout
	n.Child = i * f
	n.Children = min((i+1)*f, k.nodes(level+1)) - n.Child
	n.Used, n.Room = n.Children-1, f-1
	return n
}

func (k look[C]) Over(level, i int) int { return i / k.under(level) }

func (k look[C]) Inside(level, i int) layout.Inside {
	n := k.Node(level, i)
	in := layout.Inside{Entries: level == len(k.t.counts), PerLine: n.Room}
	for _, c := range k.t.line(level, i)[:n.Used] {
		in.Keys = append(in.Keys, order.Probe{Code: uint64(c)})
	}
	return in
}

func (k look[C]) Way(key order.Probe) []layout.Visit {
	var way []layout.Visit
	c, x := C(key.Code), 0
	for level := range k.t.counts {
		j := below(k.t.line(level, x), c)
		j = min(j, k.Node(level, x).Children-1) // in a damaged file anything can be counted
		way = append(way, layout.Visit{Level: level, Node: x, Slot: j})
		x = x*k.t.cfg.Fanout + j
	}
	keys := k.t.line(len(k.t.counts), x)[:k.Node(len(k.t.counts), x).Used]
	j := below(keys, c)
	return append(way, layout.Visit{Level: len(k.t.counts), Node: x, Slot: j, Found: j < len(keys) && keys[j] == c})
}

// below counts the keys below a key.
func below[C simd.Code](keys []C, key C) (n int) {
	for _, k := range keys {
		if k < key {
			n++
		}
	}
	return n
}

// Locate returns the node that a byte of the tree's image belongs to.
func (k look[C]) Locate(offset int) (level, node int, ok bool) {
	if offset < 0 {
		return 0, 0, false
	}
	level, exact := slices.BinarySearch(k.t.places, offset/8)
	if !exact {
		level--
	}
	node = (offset - k.t.places[level]*8) / simd.LineBytes
	return level, node, node < k.nodes(level)
}
