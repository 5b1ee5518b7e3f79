package blocked

import (
	"fmt"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// Look returns the tree, level by level. A level is one of lines; which page a
// line lies in is said of each.
func (t *Tree[C]) Look() layout.Look { return look[C]{t, t.leaves.Look()} }

type look[C simd.Code] struct {
	t      *Tree[C]
	leaves layout.Look
}

// shift returns the binary logarithm of the leaves below a full line of a level.
func (k look[C]) shift(level int) int { return (len(k.t.steps) - level) * k.t.geo.L }

// row returns the row that a level is in, and which of its levels it is.
func (k look[C]) row(level int) (row, at int) {
	for row+1 < len(k.t.rows) && k.t.first[row+1] <= level {
		row++
	}
	return row, level - k.t.first[row]
}

func (k look[C]) Levels() []layout.Level {
	var out []layout.Level
	for g := range k.t.steps {
		row, at := k.row(g)
		out = append(out, layout.Level{
			Name: fmt.Sprintf("row %d, line %d", row, at), Nodes: k.t.nodes(g), Bytes: simd.LineBytes, Room: len(k.t.slot),
		})
	}
	return append(out, k.leaves.Levels()...)
}

func (k look[C]) Node(level, i int) layout.Node {
	if level == len(k.t.steps) {
		return k.leaves.Node(0, i)
	}
	s, f := k.shift(level), 1<<k.t.geo.L
	n := layout.Node{First: i << s, End: min((i+1)<<s, k.t.count), Link: -1, Child: i * f, Room: len(k.t.slot)}
	below := k.t.count
	if level+1 < len(k.t.steps) {
		below = k.t.nodes(level + 1)
	}
	n.Children = min(n.Child+f, below) - n.Child
	n.Used = n.Children - 1
	per := 1 << k.t.leaves.LeafShift
	n.Entry = min(n.First*per, k.t.Len())
	n.Entries = min(n.End*per, k.t.Len()) - n.Entry
	row, at := k.row(level)
	n.Name = fmt.Sprintf("page %d of row %d", i>>(at*k.t.geo.L), row)
	return n
}

func (k look[C]) Over(level, i int) int { return i >> k.shift(level) }

// keys returns the separators of a line in key order.
func (k look[C]) keys(level, i int) []C {
	line, out := k.t.line(level, i), make([]C, 0, len(k.t.slot))
	for _, slot := range k.t.slot[:k.Node(level, i).Used] {
		out = append(out, line[slot])
	}
	return out
}

func (k look[C]) Inside(level, i int) layout.Inside {
	if level == len(k.t.steps) {
		return k.leaves.Inside(0, i)
	}
	in := layout.Inside{PerLine: len(k.t.slot)}
	for _, c := range k.keys(level, i) {
		in.Keys = append(in.Keys, order.Probe{Code: uint64(c)})
	}
	row, at := k.row(level)
	r := k.t.rows[row]
	in.Notes = []string{fmt.Sprintf("A line of page %d of row %d: a page has %d lines on %d levels, of which this is level %d.",
		i>>(at*k.t.geo.L), row, r.PageLines, r.Levels, at)}
	return in
}

func (k look[C]) Way(key order.Probe) []layout.Visit {
	var way []layout.Visit
	c, x := C(key.Code), 0
	for level := range k.t.steps {
		j := 0
		for _, s := range k.keys(level, x) {
			if s < c {
				j++
			}
		}
		way = append(way, layout.Visit{Level: level, Node: x, Slot: j})
		x = x<<k.t.geo.L + j
	}
	leaf := k.leaves.Inside(0, x).Keys
	v := layout.Visit{Level: len(k.t.steps), Node: x}
	for _, e := range leaf {
		if e.Code < key.Code {
			v.Slot++
		}
	}
	v.Found = v.Slot < len(leaf) && leaf[v.Slot].Code == key.Code
	return append(way, v)
}

// Locate returns the line that a byte of the tree's image belongs to.
func (k look[C]) Locate(offset int) (level, node int, ok bool) {
	line := offset / simd.LineBytes
	if offset < 0 || line >= Lines(k.t.rows) {
		_, node, ok = k.leaves.(layout.Located).Locate(offset)
		return len(k.t.steps), node, ok
	}
	row := len(k.t.rows) - 1
	for k.t.rows[row].At > line {
		row--
	}
	r := &k.t.rows[row]
	page, in := (line-r.At)/r.PageLines, (line-r.At)%r.PageLines
	at := 0
	for at+1 < r.Levels && linesAbove(at+1, k.t.geo.L) <= in {
		at++
	}
	node = page<<(at*k.t.geo.L) + in - linesAbove(at, k.t.geo.L)
	level = k.t.first[row] + at
	return level, node, node < k.t.nodes(level)
}
