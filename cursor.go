package pando

import (
	"github.com/pando-index/pando/internal/index"
)

// Cursor goes through an index entry by entry, in both directions. Seek, First
// and Last go to an entry, Next and Prev to a neighbour; each reports whether
// there is one. No step allocates memory.
//
//	c := ix.Cursor()
//	for ok := c.Seek(10); ok; ok = c.Next() {
//		fmt.Println(c.Key(), c.Value())
//	}
//
// A cursor is at an entry, or between two, before the first, behind the last.
// A Seek that finds nothing leaves it behind the last entry; a Next or Prev that
// finds nothing leaves it behind the last or before the first, from where the
// other direction leads back. A new cursor is at either end: Next goes to the
// first entry, Prev to the last.
//
// A cursor is for one goroutine; an index may have any number of them. It needs
// no Close. That of a Tree follows the rule of All: each step goes to the nearest
// key that is there at that time, and Key and Value return what the step has
// read, whatever happened since.
type Cursor[K Key, V any] interface {
	// Seek goes to the first entry with a key from key on.
	Seek(key K) bool
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	// Valid reports whether the cursor is at an entry.
	Valid() bool
	// Key returns the key of the entry; a string is copied. Key, Value and
	// AppendKey panic if the cursor is at none.
	Key() K
	Value() V
	// AppendKey appends the key to dst, as append does: no memory is allocated
	// where dst has room. Keys must be strings, or it panics.
	AppendKey(dst []byte) []byte
}

// Cursor returns a new cursor.
func (f *Frozen[K, V]) Cursor() Cursor[K, V] {
	f.open()
	return &frozenCursor[K, V]{f: f, new: true}
}

// frozenCursor is at entry at; or, where on is false, before it.
type frozenCursor[K Key, V any] struct {
	f   *Frozen[K, V]
	at  int
	on  bool
	new bool
}

// move goes to entry i, and behind the last or before the first if there is none.
func (c *frozenCursor[K, V]) move(ix *index.Index, i int) bool {
	c.f.done(ix)
	c.at, c.on, c.new = max(0, min(i, ix.Len())), i >= 0 && i < ix.Len(), false
	return c.on
}

func (c *frozenCursor[K, V]) Seek(key K) bool {
	ix := c.f.open()
	i, _ := ix.Seek(c.f.probe(key))
	return c.move(ix, i)
}

func (c *frozenCursor[K, V]) First() bool { return c.move(c.f.open(), 0) }

func (c *frozenCursor[K, V]) Last() bool {
	ix := c.f.open()
	return c.move(ix, ix.Len()-1)
}

func (c *frozenCursor[K, V]) Next() bool {
	i := c.at
	if c.on {
		i++
	}
	return c.move(c.f.open(), i)
}

func (c *frozenCursor[K, V]) Prev() bool {
	if c.new {
		return c.Last()
	}
	return c.move(c.f.open(), c.at-1)
}

func (c *frozenCursor[K, V]) Valid() bool { return c.on }

// mustBeOn panics where a cursor is at no entry.
func mustBeOn(on bool, method string) {
	if !on {
		panic("pando: Cursor." + method + ": the cursor is at no entry")
	}
}

func (c *frozenCursor[K, V]) Key() K {
	mustBeOn(c.on, "Key")
	ix := c.f.open()
	k := c.f.keyAt(ix, c.at)
	c.f.done(ix)
	return k
}

func (c *frozenCursor[K, V]) Value() V {
	mustBeOn(c.on, "Value")
	ix := c.f.open()
	v := valAt[V](ix, c.at)
	c.f.done(ix)
	return v
}

func (c *frozenCursor[K, V]) AppendKey(dst []byte) []byte {
	mustBeOn(c.on, "AppendKey")
	c.f.mustHaveStrings("Cursor.AppendKey")
	ix := c.f.open()
	dst = ix.AppendKey(dst, c.at)
	c.f.done(ix)
	return dst
}

// Cursor returns a new cursor.
func (t *Tree[K, V]) Cursor() Cursor[K, V] {
	m := t.open()
	return &treeCursor[K, V]{t: t, c: m.Cursor(), side: atEitherEnd}
}

// treeCursor is at a key, or beside one: the key need not be there. Before or
// after no key is before the first or behind the last.
type treeCursor[K Key, V any] struct {
	t    *Tree[K, V]
	c    index.Cursor
	at   index.Edge
	val  V
	side side
	runs running
}

// side says where a cursor is.
type side uint8

const (
	atEitherEnd side = iota
	beforeKey
	onKey
	afterKey
)

// running says in which direction the cursor below goes on by itself.
type running uint8

const (
	nowhere running = iota
	upwards
	downwards
)

// step takes the cursor below a step further. Where it finds nothing, the cursor
// is as it was, but not at its key.
func (c *treeCursor[K, V]) step(dir running) bool {
	key, x, ok := c.c.Next()
	val := index.ValueAs[V](x)
	c.t.done()
	if !ok {
		c.runs = nowhere
		return false
	}
	c.at, c.val, c.side, c.runs = index.Edge{Key: key}, val, onKey, dir
	return true
}

// begin makes the cursor below begin at an edge.
func (c *treeCursor[K, V]) begin(from index.Edge, dir running) bool {
	c.t.open()
	if !c.c.Move(from, dir == downwards) {
		c.runs = nowhere
		return false
	}
	return c.step(dir)
}

func (c *treeCursor[K, V]) Seek(key K) bool {
	c.at, c.side = index.Edge{Key: c.t.probe(key)}, beforeKey
	return c.begin(c.at, upwards)
}

func (c *treeCursor[K, V]) First() bool {
	c.at, c.side = index.NoEdge, beforeKey
	return c.begin(c.at, upwards)
}

func (c *treeCursor[K, V]) Last() bool {
	c.at, c.side = index.NoEdge, afterKey
	return c.begin(c.at, downwards)
}

func (c *treeCursor[K, V]) Next() bool {
	switch {
	case c.side == atEitherEnd:
		return c.First()
	case c.side == onKey && c.runs == upwards:
		if c.step(upwards) {
			return true
		}
		c.side = afterKey
		return false
	case c.side == beforeKey:
		return c.begin(c.at, upwards)
	}
	c.side = afterKey
	return !c.at.None && c.begin(index.Edge{Key: c.at.Key, Open: true}, upwards)
}

func (c *treeCursor[K, V]) Prev() bool {
	switch {
	case c.side == atEitherEnd:
		return c.Last()
	case c.side == onKey && c.runs == downwards:
		if c.step(downwards) {
			return true
		}
		c.side = beforeKey
		return false
	case c.side == afterKey:
		return c.begin(c.at, downwards)
	}
	c.side = beforeKey
	return !c.at.None && c.begin(index.Edge{Key: c.at.Key, Open: true}, downwards)
}

func (c *treeCursor[K, V]) Valid() bool { return c.side == onKey }

func (c *treeCursor[K, V]) Key() K {
	mustBeOn(c.side == onKey, "Key")
	return c.t.keyOf(c.at.Key)
}

func (c *treeCursor[K, V]) Value() V {
	mustBeOn(c.side == onKey, "Value")
	return c.val
}

func (c *treeCursor[K, V]) AppendKey(dst []byte) []byte {
	mustBeOn(c.side == onKey, "AppendKey")
	c.t.mustHaveStrings("Cursor.AppendKey")
	return append(dst, c.at.Key.Text...)
}
