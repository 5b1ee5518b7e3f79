package pando

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
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
// no Close. A cursor of a Tree follows the rule of All: each step goes to the
// nearest key that is there at that time, and Key and Value return the entry as
// the step read it, even if it has changed since.
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
	f.c.open()
	return &frozenCursor[K, V]{frozenPlace{f: &f.c, new: true}}
}

// frozenCursor is a cursor over an index.
type frozenCursor[K Key, V any] struct{ frozenPlace }

func (c *frozenCursor[K, V]) Seek(key K) bool {
	ix, i := c.f.ceil(order.Encode(c.f.key.Type, key))
	return c.move(ix, i)
}

func (c *frozenCursor[K, V]) Key() K {
	ix := c.entry("Key")
	k := order.Decode[K](c.f.key.Type, ix.Key(c.at))
	c.f.done(ix)
	return k
}

func (c *frozenCursor[K, V]) Value() V {
	ix := c.entry("Value")
	v := valAt[V](ix, c.at)
	c.f.done(ix)
	return v
}

// frozenPlace is a cursor without its types, at entry at; or, where on is false, before
// it.
type frozenPlace struct {
	f   *frozenCore
	at  int
	on  bool
	new bool
}

// move goes to entry i, and behind the last or before the first if there is none.
func (c *frozenPlace) move(ix *index.Index, i int) bool {
	c.f.done(ix)
	c.at, c.on, c.new = max(0, min(i, ix.Len())), i >= 0 && i < ix.Len(), false
	return c.on
}

// entry returns the index, and panics where the cursor is at no entry.
func (c *frozenPlace) entry(method string) *index.Index {
	mustBeOn(c.on, method)
	return c.f.open()
}

func (c *frozenPlace) First() bool { return c.move(c.f.open(), 0) }

func (c *frozenPlace) Last() bool {
	ix := c.f.open()
	return c.move(ix, ix.Len()-1)
}

func (c *frozenPlace) Next() bool {
	i := c.at
	if c.on {
		i++
	}
	return c.move(c.f.open(), i)
}

func (c *frozenPlace) Prev() bool {
	if c.new {
		return c.Last()
	}
	return c.move(c.f.open(), c.at-1)
}

func (c *frozenPlace) Valid() bool { return c.on }

func (c *frozenPlace) AppendKey(dst []byte) []byte {
	mustBeOn(c.on, "AppendKey")
	c.f.key.mustHavePrefixes("Cursor.AppendKey")
	ix := c.f.open()
	dst = ix.AppendKey(dst, c.at)
	c.f.done(ix)
	return dst
}

// mustBeOn panics where a cursor is at no entry.
func mustBeOn(on bool, method string) {
	if !on {
		panic("pando: Cursor." + method + ": the cursor is at no entry")
	}
}

// Cursor returns a new cursor.
func (t *Tree[K, V]) Cursor() Cursor[K, V] {
	return &treeCursor[K, V]{treePlace{t: &t.c, c: t.c.open().Cursor(), side: atEitherEnd}}
}

// treeCursor is a cursor over a tree.
type treeCursor[K Key, V any] struct{ treePlace }

func (c *treeCursor[K, V]) Seek(key K) bool { return c.seek(order.Encode(c.t.key.Type, key)) }

func (c *treeCursor[K, V]) Key() K {
	mustBeOn(c.side == onKey, "Key")
	return order.Decode[K](c.t.key.Type, c.at.Key)
}

func (c *treeCursor[K, V]) Value() V {
	mustBeOn(c.side == onKey, "Value")
	return index.ValueAs[V](c.val)
}

// treePlace is a cursor without its types. It is at a key, or beside one: the key need
// not be there. Before or after no key is before the first or behind the last.
type treePlace struct {
	t    *treeCore
	c    live.Cursor
	at   index.Edge
	val  index.Value
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
func (c *treePlace) step(dir running) bool {
	key, val, ok := c.c.Next()
	c.t.done()
	if !ok {
		c.runs = nowhere
		return false
	}
	c.at, c.val, c.side, c.runs = index.Edge{Key: key}, val, onKey, dir
	return true
}

// begin makes the cursor below begin at an edge.
func (c *treePlace) begin(from index.Edge, dir running) bool {
	c.t.open()
	if !c.c.Move(from, dir == downwards) {
		c.runs = nowhere
		return false
	}
	return c.step(dir)
}

func (c *treePlace) seek(key order.Probe) bool {
	c.at, c.side = index.Edge{Key: key}, beforeKey
	return c.begin(c.at, upwards)
}

func (c *treePlace) First() bool {
	c.at, c.side = index.NoEdge, beforeKey
	return c.begin(c.at, upwards)
}

func (c *treePlace) Last() bool {
	c.at, c.side = index.NoEdge, afterKey
	return c.begin(c.at, downwards)
}

func (c *treePlace) Next() bool {
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

func (c *treePlace) Prev() bool {
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

func (c *treePlace) Valid() bool { return c.side == onKey }

func (c *treePlace) AppendKey(dst []byte) []byte {
	mustBeOn(c.side == onKey, "AppendKey")
	c.t.key.mustHavePrefixes("Cursor.AppendKey")
	return append(dst, c.at.Key.Text...)
}
