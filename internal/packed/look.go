package packed

import (
	"fmt"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// Look returns the tree, level by level: the tree over the greatest keys, and the
// pages.
func (t *Tree[C]) Look() layout.Look {
	return layout.Stack(t.top.Look(), func(i int) int { return i }, pages[C]{t})
}

// pages is a look at the pages alone.
type pages[C simd.Code] struct{ t *Tree[C] }

func (p pages[C]) Levels() []layout.Level {
	return []layout.Level{{Name: "pages", Nodes: p.t.count, Room: simd.PackedPage}}
}

func (p pages[C]) Node(_, i int) layout.Node {
	n := layout.Node{First: i, End: i + 1, Link: -1, Room: simd.PackedPage, Entry: i * simd.PackedPage}
	n.Used = min(simd.PackedPage, p.t.length-n.Entry)
	n.Entries = n.Used
	n.Name = fmt.Sprintf("%d bits a key", simd.PackedWidth[C](p.t.table()[i].At))
	return n
}

func (p pages[C]) Over(_, i int) int { return i }

func (p pages[C]) keys(i int) []C {
	var keys [simd.PackedPage]C
	simd.Unpack(&p.t.pages, keys[:], i*simd.PackedPage)
	return keys[:p.Node(0, i).Used]
}

func (p pages[C]) Inside(_, i int) layout.Inside {
	e := p.t.table()[i]
	width := simd.PackedWidth[C](e.At)
	in := layout.Inside{Entries: true, PerLine: simd.PackedGroup}
	for _, k := range p.keys(i) {
		in.Keys = append(in.Keys, order.Probe{Code: uint64(k)})
	}
	in.Notes = []string{
		fmt.Sprintf("Keys are differences of %d bits to the least of the page: %d bytes in all.", width, 8*wordsOf(width)),
		fmt.Sprintf("A search reads the line with the %d separators of the groups, then a group of %d keys.", simd.PackedGroups, simd.PackedGroup),
	}
	return in
}

func (p pages[C]) Way(key order.Probe) []layout.Visit {
	i, _ := p.t.top.Seek(C(key.Code))
	i = min(i, p.t.count-1)
	v := layout.Visit{Node: i}
	keys := p.keys(i)
	for _, k := range keys {
		if k < C(key.Code) {
			v.Slot++
		}
	}
	v.Found = v.Slot < len(keys) && keys[v.Slot] == C(key.Code)
	v.Note = fmt.Sprintf("group %d of the page", min(v.Slot/simd.PackedGroup, simd.PackedGroups-1))
	return []layout.Visit{v}
}

// Locate returns the page that a byte of the tree's image belongs to, by its
// place in the table or among the pages.
func (p pages[C]) Locate(offset int) (level, node int, ok bool) {
	table, words := p.t.block.Segment(2), p.t.block.Segment(3)
	if at := offset - p.t.block.Offset(table); at >= 0 && at < len(table) {
		return 0, at / 16, true
	}
	at := offset - p.t.block.Offset(words)
	if at < 0 || at >= len(words) {
		return 0, 0, false
	}
	entries := p.t.table()
	lo, hi := 0, len(entries)-1
	for lo < hi { // the last page that begins there or before
		mid := (lo + hi + 1) / 2
		if int(entries[mid].At>>8*8) <= at {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return 0, lo, true
}
