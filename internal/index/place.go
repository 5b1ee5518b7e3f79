package index

import "github.com/pando-index/pando/internal/order"

// Place is a cursor over an index without its types, at entry at; or, where on is false,
// before it.
type Place struct {
	h   *Handle
	at  int
	on  bool
	new bool
}

// Place returns a new cursor.
func (h *Handle) Place() Place {
	h.Open()
	return Place{h: h, new: true}
}

// move goes to entry i, and behind the last or before the first if there is none.
func (c *Place) move(ix *Index, i int) bool {
	c.h.Done(ix)
	c.at, c.on, c.new = max(0, min(i, ix.n)), i >= 0 && i < ix.n, false
	return c.on
}

// Entry returns the handle, the index and the entry where the cursor is, for a method that
// panics where it is at none.
func (c *Place) Entry(method string) (h *Handle, ix *Index, i int) {
	MustBeOn(c.on, method)
	return c.h, c.h.Open(), c.at
}

// Type returns the type of keys.
func (c *Place) Type() order.Type { return c.h.Key.Type }

// To goes to the first entry with a key from key on.
func (c *Place) To(key order.Probe) bool { return c.move(c.h.Ceil(key)) }

// First goes to the first entry.
func (c *Place) First() bool { return c.move(c.h.Open(), 0) }

// Last goes to the last entry.
func (c *Place) Last() bool {
	ix := c.h.Open()
	return c.move(ix, ix.n-1)
}

// Next goes to the next entry.
func (c *Place) Next() bool {
	i := c.at
	if c.on {
		i++
	}
	return c.move(c.h.Open(), i)
}

// Prev goes to the entry before.
func (c *Place) Prev() bool {
	if c.new {
		return c.Last()
	}
	return c.move(c.h.Open(), c.at-1)
}

// Valid reports whether the cursor is at an entry.
func (c *Place) Valid() bool { return c.on }

// AppendKey appends the key of the entry to dst.
func (c *Place) AppendKey(dst []byte) []byte {
	MustBeOn(c.on, "AppendKey")
	c.h.Key.MustHavePrefixes("Cursor.AppendKey")
	ix := c.h.Open()
	dst = ix.AppendKey(dst, c.at)
	c.h.Done(ix)
	return dst
}
