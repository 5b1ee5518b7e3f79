package bplus

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Cursor reads entries of a tree one after the other, in either direction,
// while others change it: each entry that it returns is the next one of those
// that are there at that time. It reads some lines of a leaf at a time, few at
// first, since most ranges are short.
type Cursor[C Code] struct {
	t      *Tree[C]
	gen    uint64
	from   run[C] // entries that were read and are still to come, in key order
	passed []seen // leaves that the way led through since the last entry
	here   seen   // leaf of the entries
	beside uint32 // the leaf that comes after it, if that is known
	line   int    // the next of its lines to be read, none where there is no such line
	many   int    // lines to be read at a time
	sought bool   // it was found by a search: its first line may have entries before pos
	pos    C      // the next entry is not before
	begin  C      // pos before the last entry, or span
	end    bool   // there is none
	down   bool
	room   run[C] // memory of entries
}

// A cursor reads firstLines at first, which have some twenty entries, then moreLines,
// and then leaves. Experiments scan and mixed.
const (
	firstLines = 8
	moreLines  = 32
)

// seen is a leaf and its word when it was read.
type seen struct {
	leaf uint32
	word uint64
}

// Ascend returns a cursor over the entries from key on.
func (t *Tree[C]) Ascend(key C) *Cursor[C] { return t.cursor(key, false) }

// Descend returns a cursor over the entries up to key, in descending order.
func (t *Tree[C]) Descend(key C) *Cursor[C] { return t.cursor(key, true) }

func (t *Tree[C]) cursor(key C, down bool) *Cursor[C] {
	c := par.Get(t.cursors)
	c.t = t
	if c.room.keys == nil {
		n := simd.UnpackRoom[C](lines)
		c.room = run[C]{make([]C, n), make([]C, n)}
	}
	c.Move(key, down)
	return c
}

// Done gives the cursor's memory to a later one. It must not be used again.
func (c *Cursor[C]) Done() {
	t := c.t
	c.t = nil // a cursor in the pool does not keep the tree
	par.Put(t.cursors, c)
}

// Next returns the next entry, and false if there is none.
func (c *Cursor[C]) Next() (key, val C, ok bool) {
	if len(c.from.keys) > 0 && len(c.passed) == 0 && c.here.word&simd.WordSealed == 0 && !stall.On && !mutant.On && c.valid() {
		key, val = c.take() // as nearly always: the leaf has not changed
		return key, val, true
	}
	if !c.ready() {
		return 0, 0, false
	}
	key, val = c.take()
	return key, val, true
}

// take returns the next of the entries that were read.
func (c *Cursor[C]) take() (key, val C) {
	c.begin = c.pos
	if i := len(c.from.keys) - 1; c.down {
		key, val = c.from.keys[i], c.from.vals[i]
		c.from.keys, c.from.vals = c.from.keys[:i], c.from.vals[:i]
	} else {
		key, val = c.from.keys[0], c.from.vals[0]
		c.from.keys, c.from.vals = c.from.keys[1:], c.from.vals[1:]
	}
	c.past(key)
	c.t.edges.Acquire(uint64(key))
	return key, val
}

// past goes past a key.
func (c *Cursor[C]) past(key C) {
	if c.down {
		c.pos, c.end = key-1, key == 0
	} else {
		c.pos, c.end = key+1, key == ^C(0)
	}
}

// Span returns entries that come next, at most as many as it is told, at least
// one unless there is none, and goes past them. All are there at this time; they
// are in key order, whatever the direction. Before each but the first is used,
// the guard has to say that it still comes next; if it does not, Resume makes the
// cursor go on behind the last that was used, or Undo before all of them. The
// slices are the caller's to change, until the cursor is used again.
func (c *Cursor[C]) Span(most int) (keys, vals []C, g Guard) {
	if !c.ready() {
		return nil, nil, g
	}
	n, rest := min(most, len(c.from.keys)), c.from
	if c.here.word&simd.WordSealed != 0 { // see ready
		n = 1
	}
	c.begin = c.pos
	if at := len(rest.keys) - n; c.down {
		keys, vals = rest.keys[at:], rest.vals[at:]
		c.from = run[C]{rest.keys[:at], rest.vals[:at]}
		c.past(keys[0])
	} else {
		keys, vals = rest.keys[:n], rest.vals[:n]
		c.from = run[C]{rest.keys[n:], rest.vals[n:]}
		c.past(keys[n-1])
	}
	if epoch.RaceOn {
		for _, key := range keys {
			c.t.edges.Acquire(uint64(key))
		}
	}
	g = Guard{c.t.leaf(c.here.leaf).word(), c.here.word}
	if mutant.On && mutant.Is("cursor's version") {
		g.Word = &g.Was
	}
	return keys, vals, g
}

// Resume goes back to right behind a key of the last span.
func (c *Cursor[C]) Resume(key C) {
	c.past(key)
	c.restart()
}

// Undo takes the last call of Next or Span back: the next call begins where that one
// began, even if the tree has changed since.
func (c *Cursor[C]) Undo() {
	c.pos, c.end = c.begin, false
	c.restart()
}

// Guard tells whether a leaf is unchanged: a word that it once had never comes
// back, even where its memory is used again, and Close changes it, too. A loop
// whose compiler would call Holds loads the word itself.
type Guard struct {
	Word *uint64
	Was  uint64
}

// Holds reports whether the rest of a span is still valid: its entries come next.
func (g Guard) Holds() bool { return atomic.LoadUint64(g.Word) == g.Was }

// ready makes sure that the next entry has been read, and is there at this time.
// It reports whether there is one.
func (c *Cursor[C]) ready() bool {
	c.t.rw.RLock()
	found := c.find()
	c.t.rw.RUnlock()
	return found
}

// find is ready where the tree is locked, if it is.
func (c *Cursor[C]) find() bool {
	if c.here.word&simd.WordSealed != 0 && !(mutant.On && mutant.Is("sealed leaf read again")) {
		// Another leaf may have taken its entries since, and may have changed. It
		// was right when it was read: to be used for that call alone.
		c.restart()
	}
	for !c.end {
		if len(c.from.keys) == 0 {
			c.fill()
			continue
		}
		if !c.valid() {
			c.restart()
			continue
		}
		stall.At("cursor: entry found")
		c.passed = c.passed[:0]
		return true
	}
	return false
}

// Move makes Next return the first entry from key on, or down from it, whatever
// the cursor has returned before. It allocates nothing.
func (c *Cursor[C]) Move(key C, down bool) {
	c.pos, c.down, c.end, c.many = key, down, false, firstLines
	c.restart()
}

// valid reports whether the entries that were read are unchanged.
func (c *Cursor[C]) valid() bool {
	if mutant.On && mutant.Is("cursor's version") {
		return true
	}
	for _, p := range c.passed {
		if c.t.leaf(p.leaf).loadWord() != p.word {
			return false
		}
	}
	return (c.here.leaf == nothing || c.t.leaf(c.here.leaf).loadWord() == c.here.word) && c.t.Current(c.gen)
}

// restart begins again at the position.
func (c *Cursor[C]) restart() {
	c.from, c.passed, c.here = run[C]{}, c.passed[:0], seen{nothing, 0}
}

// fill reads some lines of a leaf, or finds that there is none: of the leaf that
// pos is in, or of the one beside it.
func (c *Cursor[C]) fill() {
	switch {
	case c.t.Closed():
		c.end = true
		return
	case c.here.leaf == nothing:
		c.gen = c.t.Gen()
		c.seek(c.pos)
	case c.line < 0 || c.line >= lines:
		if !c.sideways() {
			return
		}
	}
	l := c.t.leaf(c.here.leaf)
	first, end := c.line, min(c.line+c.many, lines)
	if c.line = end; c.down {
		first, end = max(0, first+1-c.many), first+1
		c.line = first - 1
	}
	if c.many == lines {
		c.fetchBeside(l, first, end)
	}
	n := l.unpackLines(first, end, c.room.keys, c.room.vals)
	c.from = run[C]{c.room.keys[:n], c.room.vals[:n]}
	if c.many < lines {
		c.fetchNext(l, first, end)
	}
	if c.sought {
		c.cut()
	}
	stall.At("cursor: leaf read")
}

// seek goes to the leaf and the line that a key is in.
func (c *Cursor[C]) seek(key C) {
	x, line, word := c.t.seek(key)
	stall.At("cursor: leaf found")
	c.here, c.line, c.sought, c.beside = seen{x, word}, line, true, nothing
}

// sideways goes from a leaf that has no more to the one beside it. It returns
// false if there is none, or if the leaf has changed: then the cursor begins
// again at the position.
func (c *Cursor[C]) sideways() bool {
	l := c.t.leaf(c.here.leaf)
	in, high := *l.info(), l.high()
	if !c.valid() {
		c.restart()
		return false
	}
	if c.down && in.first == 1 || !c.down && high == ^C(0) {
		c.end = true
		return false
	}
	c.passed = append(c.passed, c.here)
	x, pos := in.next, high+1
	if c.down {
		x, pos = c.beside, C(in.low)
	}
	if x != nothing {
		b := c.t.leaf(x)
		word, its := b.loadWord(), b.info()
		stall.At("cursor: leaf beside found")
		borders := its.first == 0 && C(its.low) == high
		if c.down {
			borders = b.high() == pos
		}
		if borders && its.owner == c.t.id && word&unread == 0 {
			c.here, c.line, c.sought, c.beside = seen{x, word}, 0, false, nothing
			if c.down {
				c.line = lines - 1
			}
			return true
		}
	}
	c.seek(pos)
	return true
}

// fetchNext prefetches the lines that are likely to be read after lines [first,
// end) of a leaf, where a range may be short.
func (c *Cursor[C]) fetchNext(l leaf[C], first, end int) {
	const ahead = moreLines / 2
	if c.many == firstLines {
		c.many = moreLines
		simd.Fetch(unsafe.Pointer(l.info()), 1)
		if c.down {
			end = max(0, first-ahead)
			simd.Fetch(l.at(end), first-end)
		} else {
			simd.Fetch(l.at(end), min(ahead, lines-end))
		}
		return
	}
	if c.many = lines; c.down && first == 0 {
		c.fetchBeside(l, lines-ahead, lines)
	} else if !c.down && end == lines {
		c.fetchBeside(l, 0, ahead)
	}
}

// fetchBeside prefetches lines of the leaf that comes after another.
func (c *Cursor[C]) fetchBeside(l leaf[C], first, end int) {
	if c.beside == nothing {
		in := l.info()
		if c.beside = in.next; c.down {
			if in.first == 1 {
				c.beside = nothing
			} else {
				c.beside, _, _ = c.t.seek(C(in.low))
			}
		}
		if c.beside == nothing {
			return
		}
		simd.Fetch(c.t.leaf(c.beside).pilot, simd.RegularPilot[C]()/simd.LineBytes)
	}
	simd.Fetch(c.t.leaf(c.beside).at(first), end-first)
}

// cut leaves out entries that were read and come before the position.
func (c *Cursor[C]) cut() {
	c.sought = false
	keys, vals := c.from.keys, c.from.vals
	i := 0
	for i < len(keys) && (keys[i] < c.pos || c.down && keys[i] == c.pos) {
		i++
	}
	if c.from = (run[C]{keys[i:], vals[i:]}); c.down {
		c.from = run[C]{keys[:i], vals[:i]}
	}
}
