package bplus

import (
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// FewRoom is the length of slices that Few copies entries to: they have room for those of
// fewLines lines, which are some twenty, or fifteen of 32 bits.
const FewRoom = 36

// fewLines returns how many lines Few reads.
func fewLines[C Code]() int { return FewRoom/simd.UnpackRoom[C](0) - 1 }

// Place is where a range begins, as Few has found it.
type Place struct {
	Guard Guard // has to hold before each entry but the first is used, as that of a span has
	gen   uint64
	leaf  uint32
	line  int
}

// Few copies the entries from lo to hi, which is not below, to keys and vals without a cursor,
// if they are few and lie together, as most ranges do: they are those from first up to n, and
// all were there at one time. If the guard holds when they are used, there are no others.
// Else it returns false and where the first of them is, if it has found that.
func (t *Tree[C]) Few(lo, hi C, keys, vals []C) (first, n int, p Place, ok bool) {
	t.rw.RLock()
	first, n, p, ok = t.few(lo, hi, keys, vals)
	t.rw.RUnlock()
	if epoch.RaceOn && ok {
		for _, key := range keys[first:n] {
			t.edges.Acquire(uint64(key))
		}
	}
	return first, n, p, ok
}

// few is Few where the tree is locked, if it is.
func (t *Tree[C]) few(lo, hi C, keys, vals []C) (first, n int, p Place, ok bool) {
	gen := t.Gen()
	x, line, word := t.seek(lo)
	if word&(unread|simd.WordSealed) != 0 { // a closed tree's, or one whose entries another leaf has
		return 0, 0, Place{leaf: nothing}, false
	}
	stall.At("few: leaf found")
	l := t.leaf(x)
	p = Place{Guard{l.word(), word}, gen, x, line}
	end := min(line+fewLines[C](), lines)
	if l.seps()[end-1] < hi {
		return 0, 0, p, false
	}
	read := l.unpackLines(line, end, keys, vals)
	for first < read && keys[first] < lo {
		first++
	}
	for n = first; n < read && keys[n] <= hi; n++ {
	}
	stall.At("few: leaf read")
	if mutant.On && mutant.Is("cursor's version") {
		p.Guard.Word = &p.Guard.Was
	}
	same := p.Guard.Holds() || mutant.On && mutant.Is("few's version")
	return first, n, p, same && t.Current(gen)
}

// MoveTo is Move to a key upwards that Few has found the place of. It need not search if
// nobody has changed the leaf since.
func (c *Cursor[C]) MoveTo(p *Place, key C) {
	if c.Move(key, false); p.leaf != nothing {
		c.gen, c.here, c.line = p.gen, seen{p.leaf, p.Guard.Was}, p.line
		c.sought, c.beside = true, nothing
	}
}
