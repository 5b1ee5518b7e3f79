package words

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// mostShown is the most bytes of a string that a look copies: strings may be of
// any length, and people read the beginning.
const mostShown = 256

// Look returns the list, level by level: the tree over the directory's words, and
// the pages.
func (t *Tree) Look() layout.Look {
	return &look{Look: layout.Stack(t.root.Look(), t.firstPage, pages{t}), t: t}
}

// firstPage returns the first page that word i of the directory's root stands
// for.
func (t *Tree) firstPage(i int) int {
	if distinct := len(t.links) - len(t.words); i >= distinct {
		return t.count
	}
	link := t.links[i]
	if link&linkNode == 0 {
		return min(int(link), t.count)
	}
	return min(int(t.nodes[min(int(link&^linkNode), len(t.nodes)-1)].First), t.count)
}

// look adds to the tree over words what its keys are: bits of strings, which people
// cannot read, and the strings that these are of.
type look struct {
	layout.Look
	t *Tree
}

func (k *look) Inside(level, i int) layout.Inside {
	in := k.Look.Inside(level, i)
	if level == len(k.Levels())-1 {
		return in
	}
	root := &k.t.nodes[0].Program
	for s, p := range in.Keys {
		in.Partials = append(in.Partials, p.Code)
		in.Keys[s] = order.Probe{Text: k.t.greatest(p.Code)}
	}
	in.Bits = bitsOf(root)
	in.Notes = append(in.Notes, fmt.Sprintf("Separators are %d bits of a page's greatest string; the directory has %d nodes more for pages that these do not tell apart.",
		root.Bits(), len(k.t.nodes)-1))
	return in
}

// greatest returns the greatest string of the pages that a word of the directory's
// root stands for, as far as a look shows it.
func (t *Tree) greatest(word uint64) string {
	i, _ := t.root.Seek(word)
	last := min(t.firstPage(i+1)*pageEntries, t.n) - 1
	if last < 0 { // bytes of a damaged file, or of a list that was released
		return ""
	}
	return t.shown(last)
}

// shown returns string i as far as a look shows it.
func (t *Tree) shown(i int) string {
	text := t.view(i)
	return string([]byte(text[:min(len(text), mostShown)]))
}

// Way goes down the tree over words by the key's own bits.
func (k *look) Way(key order.Probe) []layout.Visit {
	if k.t.n == 0 {
		return []layout.Visit{{Level: len(k.Levels()) - 1}}
	}
	word := k.t.nodes[0].Program.Partial(key.Text)
	way := k.t.root.Look().Way(order.Probe{Code: word})
	for i := range way {
		way[i].Found = false
		way[i].Note = fmt.Sprintf("compares %d bits of the key with those of the strings", k.t.nodes[0].Bits())
	}
	for _, v := range (pages{k.t}).Way(key) {
		v.Level = len(way)
		way = append(way, v)
	}
	return way
}

// pages is a look at the pages alone.
type pages struct{ t *Tree }

func (p pages) Levels() []layout.Level {
	return []layout.Level{{Name: "pages", Nodes: p.t.count, Bytes: pageBytes, Room: pageEntries}}
}

func (p pages) Node(_, i int) layout.Node {
	n := layout.Node{First: i, End: i + 1, Link: -1, Room: pageEntries, Entry: i * pageEntries}
	n.Used = min(pageEntries, p.t.n-n.Entry)
	n.Entries = n.Used
	n.Name = fmt.Sprintf("%d bits compared", p.t.page(i).Bits())
	return n
}

func (p pages) Over(_, i int) int { return i }

func (p pages) Inside(_, i int) layout.Inside {
	n, pg := p.Node(0, i), p.t.page(i)
	in := layout.Inside{Entries: true, PerLine: lineKeys, Bits: bitsOf(&pg.Program)}
	for s := range n.Used {
		in.Keys = append(in.Keys, order.Probe{Text: p.t.shown(n.Entry + s)})
		in.Partials = append(in.Partials, uint64(pg.partials[s]))
	}
	in.Notes = []string{fmt.Sprintf("The page compares %d bits of each string, and the whole string once. Its strings take %d bytes.", pg.Bits(), pg.End)}
	return in
}

// bitsOf lists the bits of a program, counted from the first of a string.
func bitsOf(p *simd.Program) (bits []int) {
	for w, mask := range p.Mask {
		for b := range 64 {
			if mask>>(63-b)&1 != 0 {
				bits = append(bits, int(p.At[w])*8+b)
			}
		}
	}
	return bits
}

func (p pages) Way(key order.Probe) []layout.Visit {
	var ranks [1]int
	g := groups.Get().(*group)
	p.t.locate(g, []string{key.Text}, ranks[:])
	groups.Put(g)
	at, found := p.t.Seek(key.Text)
	v := layout.Visit{Node: min(at, p.t.n-1) / pageEntries, Found: found}
	v.Slot = at - v.Node*pageEntries
	v.Note = fmt.Sprintf("compares %d bits of the key, then whole strings", p.t.page(v.Node).Bits())
	if led := min(ranks[0], p.t.n-1) / pageEntries; led != v.Node {
		v.Note = fmt.Sprintf("partial keys led to page %d; whole strings led here", led)
	}
	return []layout.Visit{v}
}

// LocatePart returns the node that a byte of a part of the string image belongs
// to.
func (k *look) LocatePart(part, offset int) (level, node int, ok bool) {
	switch part {
	case 0:
		return k.t.root.Look().(layout.Located).Locate(offset)
	case 2:
		node = offset / pageBytes
		return len(k.Levels()) - 1, node, offset >= 0 && node < k.t.count
	}
	return 0, 0, false
}

var _ [64]byte = [unsafe.Sizeof(node{})]byte{} // so that a part's offsets are lines
