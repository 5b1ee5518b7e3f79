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
	// Key returns the key of the entry; a string is copied. Key, Value, AppendKey
	// and AppendValue panic if the cursor is at none.
	Key() K
	// Value returns the value; strings and slices of bytes of a Tree are copied.
	Value() V
	// AppendKey appends the key to dst, as append does: no memory is allocated
	// where dst has room. Keys must be strings, or it panics.
	AppendKey(dst []byte) []byte
	// AppendValue appends the value to dst, as AppendKey does the key. Values must be
	// strings or slices of bytes, or it panics.
	AppendValue(dst []byte) []byte
}

// Cursor returns a new cursor.
func (f *Frozen[K, V]) Cursor() Cursor[K, V] { return &frozenCursor[K, V]{f.c.Place()} }

// frozenCursor is a cursor over an index.
type frozenCursor[K Key, V any] struct{ index.Place }

func (c *frozenCursor[K, V]) Seek(key K) bool { return c.To(order.Encode(c.Type(), key)) }

func (c *frozenCursor[K, V]) Key() K {
	h, ix, i := c.Entry("Key")
	k := order.Decode[K](h.Key.Type, ix.Engine.Key(i))
	h.Done(ix)
	return k
}

func (c *frozenCursor[K, V]) Value() V {
	h, ix, i := c.Entry("Value")
	v := valAt[V](ix, i)
	h.Done(ix)
	return v
}

// Cursor returns a new cursor.
func (t *Tree[K, V]) Cursor() Cursor[K, V] { return &treeCursor[K, V]{t.c.Place()} }

// treeCursor is a cursor over a tree.
type treeCursor[K Key, V any] struct{ live.Place }

func (c *treeCursor[K, V]) Seek(key K) bool { return c.To(order.Encode(c.Type(), key)) }

func (c *treeCursor[K, V]) Key() K {
	return order.Decode[K](c.Type(), c.Place.Key())
}

func (c *treeCursor[K, V]) Value() V {
	return index.ValueAs[V](c.Place.Value())
}
