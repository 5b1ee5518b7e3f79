package strlist

import (
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// shownStrings is how many strings of the list are shown together: the list has
// no nodes, but a picture needs some.
const shownStrings = 64

// mostShown is the most bytes of a string that a look copies.
const mostShown = 256

// Look returns the list as one level of parts.
func (t Tree) Look() layout.Look { return look{t} }

type look struct{ Tree }

func (k look) Levels() []layout.Level {
	return []layout.Level{{Name: "list", Nodes: max(1, (k.Len()+shownStrings-1)/shownStrings), Room: shownStrings}}
}

func (k look) Node(_, i int) layout.Node {
	n := layout.Node{First: i, End: i + 1, Link: -1, Room: shownStrings, Entry: i * shownStrings}
	n.Used = min(shownStrings, k.Len()-n.Entry)
	n.Entries = n.Used
	return n
}

func (k look) Over(_, i int) int { return i }

func (k look) Inside(_, i int) layout.Inside {
	n := k.Node(0, i)
	in := layout.Inside{Entries: true, PerLine: shownStrings, Notes: []string{"The list is searched by halving; it has no nodes, and is shown in parts."}}
	for s := range n.Used {
		text := k.View(n.Entry + s)
		in.Keys = append(in.Keys, order.Probe{Text: string([]byte(text[:min(len(text), mostShown)]))})
	}
	return in
}

func (k look) Way(key order.Probe) []layout.Visit {
	at, found := k.Seek(key.Text)
	v := layout.Visit{Node: max(0, min(at, k.Len()-1)) / shownStrings, Found: found, Note: "found by halving the whole list"}
	v.Slot = at - v.Node*shownStrings
	return []layout.Visit{v}
}
