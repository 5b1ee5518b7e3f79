package live

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Place is a cursor over a tree without its types. It is at a key, or beside one: the key need
// not be there. Before or after no key is before the first or behind the last.
type Place struct {
	h    *Handle
	c    Cursor
	at   index.Edge
	val  index.Value
	side side
	runs running
}

// Place returns a new cursor.
func (h *Handle) Place() Place { return Place{h: h, c: h.Open().Cursor(), side: atEitherEnd} }

// Type returns the type of keys.
func (c *Place) Type() order.Type { return c.h.Key.Type }

// Entry returns the entry where the cursor is, as the last step read it, for a method that
// panics where it is at none.
func (c *Place) Entry(method string) (order.Probe, index.Value) {
	index.MustBeOn(c.side == onKey, method)
	return c.at.Key, c.val
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
func (c *Place) step(dir running) bool {
	key, val, ok := c.c.Next()
	c.h.done()
	if !ok {
		c.runs = nowhere
		return false
	}
	c.at, c.val, c.side, c.runs = index.Edge{Key: key}, val, onKey, dir
	return true
}

// begin makes the cursor below begin at an edge.
func (c *Place) begin(from index.Edge, dir running) bool {
	c.h.Open()
	if !c.c.Move(from, dir == downwards) {
		c.runs = nowhere
		return false
	}
	return c.step(dir)
}

// To goes to the first entry with a key from key on.
func (c *Place) To(key order.Probe) bool {
	c.at, c.side = index.Edge{Key: key}, beforeKey
	return c.begin(c.at, upwards)
}

// First goes to the first entry.
func (c *Place) First() bool {
	c.at, c.side = index.NoEdge, beforeKey
	return c.begin(c.at, upwards)
}

// Last goes to the last entry.
func (c *Place) Last() bool {
	c.at, c.side = index.NoEdge, afterKey
	return c.begin(c.at, downwards)
}

// Next goes to the next entry.
func (c *Place) Next() bool {
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

// Prev goes to the entry before.
func (c *Place) Prev() bool {
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

// Valid reports whether the cursor is at an entry.
func (c *Place) Valid() bool { return c.side == onKey }

// AppendKey appends the key of the entry to dst.
func (c *Place) AppendKey(dst []byte) []byte {
	index.MustBeOn(c.side == onKey, "AppendKey")
	c.h.Key.MustHavePrefixes("Cursor.AppendKey")
	return append(dst, c.at.Key.Text...)
}
