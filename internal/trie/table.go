package trie

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/shortcut"
)

// Table describes the root table of a trie. The zero Table is the best that is known;
// others are for experiments (cuart-root).
type Table struct {
	Off   bool // there is none
	Bytes int  // behind the common prefix that lead to a top; 0 for as many as leave 8 entries for each
}

// mostTrieTops is how many tops a table of a trie has at most. It is made once, so it
// may be larger than that of a tree that changes.
const mostTrieTops = 1 << 24

// tops returns how many tops there are at most for the given bytes behind the common
// prefix: keys that are shorter have none.
func (g *growth) tops(bytes int) int {
	n := 1
	for i := range g.spans {
		for _, k := range g.spans[i].alike[:bytes] {
			n += int(k)
		}
	}
	return n
}

// tableOf returns how many bytes lead to a top, and the lines of the table.
func (g *growth) tableOf(t Table) (bytes, lines int) {
	if t.Off || t.Bytes == 0 && int64(g.n) < shortcut.Least || g.n == 0 {
		return 0, 0
	}
	bytes = min(t.Bytes, deepest)
	if t.Bytes == 0 { // as few as lead to the most tops: keys that are shorter have none
		most := min(g.n/int(shortcut.PerTop), mostTrieTops)
		for b, tops := 1, 1; b <= deepest; b++ {
			if n := g.tops(b); n > most {
				break
			} else if n > tops {
				bytes, tops = b, n
			}
		}
	}
	return bytes, g.linesFor(bytes)
}

// linesFor returns the lines of a table for the given bytes behind the common prefix.
func (g *growth) linesFor(bytes int) int { return 1 + g.tops(bytes)/shortcut.LineFill }

// plan settles the root table and wide nodes, and returns the sizes of the segments of
// nodes and of the table.
func (g *growth) plan(t Table, w Wide) (nodes, table int, err error) {
	behind, lines := g.tableOf(t)
	if int64(g.common)+deepest > math.MaxInt32 {
		lines = 0
	}
	keep, err := g.choose(w, behind, lines)
	if err != nil {
		return 0, 0, err
	}
	if lines > 0 && keep {
		g.head.skip, g.head.depth, g.head.lines = uint32(g.common), uint32(g.common+behind), uint32(lines)
		table = lines * int(unsafe.Sizeof(shortcut.Line{}))
	}
	size := g.head.sizeOfNodes()
	if size != int64(int(size)) {
		return 0, 0, layout.ErrTooLarge
	}
	return int(size), table, nil
}

// fill writes nodes and table into the first two segments of a block, and returns
// the trie. The keys are there already.
func (g *growth) fill(keys trieKeys, b *arena.Block) (*trie, error) {
	head := (*trieHead)(unsafe.Pointer(&b.Segment(0)[0]))
	*head = g.head // with the counts, by which it is opened
	t, err := openTrie(g.n, keys, b)
	if err != nil {
		return nil, err
	}
	err = g.grow(func(l link, _, at int, part []byte) {
		copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(t.at(l)), at)), len(part)), part)
	})
	if err != nil {
		return nil, err
	}
	*head, t.root = g.head, g.head.root
	if t.short != nil {
		t.fillTable(t.short, t.root)
	}
	return t, nil
}

// fillTable puts the tops below a link into the root table, in key order.
func (t *trie) fillTable(s *shortcut.Table, l link) {
	var buf [8]byte
	if h := t.at(l); l.isInner() && int(h.depth) < s.Depth {
		for b, to, _ := h.from(l.kind(), 0); to != 0; b, to, _ = h.from(l.kind(), b+1) {
			t.fillTable(s, to)
		}
		return
	}
	if first := t.below(l); l != 0 && first < t.n {
		if x, tag := s.Place(t.keys.text(first, &buf)); x != nil {
			x.Put(tag, uint32(l))
		}
	}
}

// checkTrie returns an error for the first thing that is not as it grows from the keys.
func (t *trie) checkTrie(keys keySpans) error {
	g, err := survey(t.n, keys, 0, nil)
	if err != nil {
		return err
	}
	head := *t.head
	if err := g.readWides(t); err != nil {
		return err
	}
	if g.head.counts != head.counts || head.sizeOfNodes() != int64(len(t.nodes)) {
		return fmt.Errorf("radix: %d nodes by type, want %d", head.counts, g.head.counts)
	}
	wrong := make([]error, len(g.spans)+1)
	err = g.grow(func(l link, first, at int, part []byte) {
		if !bytes.Equal(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(t.at(l)), at)), len(part)), part) {
			// All writers of an entry find the same: that some node is wrong.
			wrong[first/spanKeys] = fmt.Errorf("radix: node %#x is not what its keys make", uint32(l))
		}
	})
	if err := errors.Join(append(wrong, err)...); err != nil {
		return err
	}
	g.head.skip, g.head.depth, g.head.lines = head.skip, head.depth, head.lines
	if head != g.head || t.root != head.root {
		return fmt.Errorf("radix: head %+v, want %+v", head, g.head)
	}
	return t.checkTable(g)
}

// readWides reads from a trie which nodes are wide, so that all grows anew as it should
// be there. Whether they pay is not asked.
func (g *growth) readWides(t *trie) error {
	lines := t.places[trieWide].count
	for at := uint32(0); at < lines; {
		l := linkTo(trieWide, int(at))
		h := (*wideHead)(unsafe.Pointer(t.at(l)))
		bad := fmt.Errorf("radix: wide node %#x is not what its keys make", uint32(l))
		lo, after := int(h.first), 0
		if n := len(g.wides); n > 0 {
			after = g.wides[n-1].hi
		}
		if lo >= g.n || lo < after || int64(g.n) >= mostWideKeys || h.count < 2 || h.count > mostWide {
			return bad
		}
		hi := g.end(lo, int(h.depth))
		if lo > 0 {
			if n, _ := g.keys.alike(lo-1, lo); n >= int(h.depth) {
				return bad
			}
		}
		if n, _ := g.keys.alike(lo, hi-1); n != int(h.depth) || hi-lo < 2 {
			return bad
		}
		tally := tally{common: int(h.depth)}
		for k := lo; k < hi; k++ {
			tally.values.note(g.keys, k, tally.common, 0)
		}
		if slots, _, _ := fitWide(&tally.values, int(h.count), int(h.shift&7)); slots == 0 || slots >= mostWideKeys {
			return bad
		}
		w := newWide(g.keys, lo, hi, tally.common, int(h.count), int(h.shift&7), &tally.values)
		if w.units() > int64(lines-at) {
			return bad
		}
		g.wides = append(g.wides, w)
		at += uint32(w.units())
	}
	if len(g.wides) == 0 {
		return nil
	}
	return g.recount()
}

// checkTable returns an error for a root table that does not follow from nodes and
// keys.
func (t *trie) checkTable(g *growth) error {
	s := shortcut.Table{Depth: int(t.head.depth), Skip: int(t.head.skip)}
	lines, behind := len(t.table)/int(unsafe.Sizeof(shortcut.Line{})), s.Depth-s.Skip
	switch {
	case t.head.lines == 0 && s.Skip == 0 && s.Depth == 0 && lines == 0:
		return nil
	case int64(t.head.lines) != int64(lines) || s.Skip != g.common || behind < 0 || behind > deepest || lines != g.linesFor(behind):
		return fmt.Errorf("radix: a root table of %d bytes for bytes %d to %d of a key", len(t.table), s.Skip, s.Depth)
	}
	s.Lines = make([]shortcut.Line, lines)
	t.fillTable(&s, t.root)
	if !bytes.Equal(arena.Bytes(s.Lines), t.table) {
		return errors.New("radix: the root table is not what the nodes make")
	}
	return nil
}
