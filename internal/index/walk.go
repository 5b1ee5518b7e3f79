package index

import (
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Walk is an iteration that is under way, over an index or over a tree that changes. It
// hands out entries many at a time, without their types: the loop over them is the face's,
// and small enough to become a part of the caller's.
type Walk struct {
	// Entries to be yielded, from number At on by Step, as long as Guard holds after
	// each. N is their number, Keys and Vals are where they lie.
	Keys, Vals  unsafe.Pointer
	N, At, Step int
	Guard       bplus.Guard

	by Walker
}

// Walker reads the entries of a Walk.
type Walker interface {
	// More sets Keys, Vals, N and Guard of the walk to the entries that are yielded next,
	// and reports whether there are any.
	More() bool
	// End gives memory back.
	End()
}

// Alive is an index or a tree of the face.
type Alive interface {
	Alive() // panics if it was closed
}

// Begin makes the walk one whose entries a walker reads, upwards or down.
func (w *Walk) Begin(by Walker, down bool) {
	w.by = by
	if w.Step = 1; down {
		w.Step = -1
	}
}

// Next reads the entries that are yielded next, and reports whether there are
// any. If there are none, the iteration has stopped.
func (w *Walk) Next() bool {
	if !w.by.More() {
		w.by.End()
		return false
	}
	if w.At = 0; w.Step < 0 {
		w.At = w.N - 1
	}
	return true
}

// NextOf is Next for an index, of whose last n entries i is the one that would have been
// yielded next: if it is one of them, the index was closed. w is nil where few entries
// were all.
func (w *Walk) NextOf(alive Alive, i, n int) bool {
	if uint(i) < uint(n) {
		alive.Alive()
	}
	return w != nil && w.Next()
}

// Stop gives memory back. An iteration that a panic stops leaves it to the
// garbage collector.
func (w *Walk) Stop() {
	if w != nil {
		w.by.End()
	}
}

// Room is memory for entries that a walk hands out. Walks are kept in a pool with it.
type Room struct {
	Keys order.Keys
	Vals Column
	Used int // most entries that were in it
}

// Forget makes the entries that were in it zero: a pool must not keep the targets of keys
// and values.
func (r *Room) Forget(val *ValueType) {
	if r.Used == 0 {
		return
	}
	if r.Keys.Len() > 0 && r.Keys.Bits() == 0 {
		clear(r.Keys.Strings()[:r.Used])
	}
	if !val.free {
		val.wipe(r.Vals.at, r.Used)
	}
	r.Used = 0
}

// windows is a walk over an index. It copies entries out window by window.
type windows struct {
	Walk
	alive      Alive
	ix         *Index
	first, end int // its entries that are left
	size       int // most entries of the next window
	room       Room
}

// The first window is of firstWindow entries, so that a short walk stays cheap. Those
// that follow are larger, up to LastWindow.
const (
	firstWindow = 8
	LastWindow  = 64
)

// Walk begins an iteration over entries [first, end), or down from the last of them.
func (ix *Index) Walk(alive Alive, first, end int, down bool) *Walk {
	w := par.Get(ix.walks)
	if w.room.Vals.n == 0 {
		most := ix.values.AtOnce(LastWindow)
		w.room.Keys, w.room.Vals = MakeKeys(ix.key.Type, most), ix.values.Zeros(most)
	}
	w.alive, w.ix, w.first, w.end, w.size = alive, ix, first, end, min(firstWindow, w.room.Vals.n)
	w.Begin(w, down)
	return &w.Walk
}

// CopyFew sets keys and vals to n entries from lo on, in reverse if they are to be read
// down. It reports whether it has: it does not if values have a size and are not kept.
// Neither keys nor vals escape from it.
func (ix *Index) CopyFew(lo, n int, down bool, keys order.Keys, vals unsafe.Pointer) bool {
	size := ix.values.kept
	if size != ix.values.size {
		return false
	}
	for i := range n {
		to := i
		if down {
			to = n - 1 - i
		}
		keys.SetProbe(to, ix.Engine.Key(lo+i))
		switch size {
		case 4:
			*(*uint32)(unsafe.Add(vals, 4*to)) = uint32(ix.Val(lo + i).Bits)
		case 8:
			*(*uint64)(unsafe.Add(vals, 8*to)) = ix.Val(lo + i).Bits
		}
	}
	return true
}

// More reads the next window.
func (w *windows) More() bool {
	n := min(w.size, w.end-w.first)
	if n <= 0 {
		return false
	}
	w.size = min(2*w.size, w.room.Vals.n)
	lo := w.first
	if w.Step < 0 {
		w.end -= n
		lo = w.end
	} else {
		w.first += n
	}
	w.copyOut(lo, n)
	w.room.Used = max(w.room.Used, n)
	w.alive.Alive()
	w.Keys, w.Vals, w.N = w.room.Keys.At(), w.room.Vals.at, n
	return true
}

// copyOut copies n entries from lo on to the memory of the walk: a few one by one, which
// takes less than to begin a copy of many.
func (w *windows) copyOut(lo, n int) {
	values := &w.ix.values
	if n > Few {
		w.ix.CopyOut(lo, w.room.Keys.Slice(0, n), values.Part(w.room.Vals, 0, n))
		return
	}
	for i := range n {
		w.room.Keys.SetProbe(i, w.ix.Engine.Key(lo+i))
		values.Store(values.Place(w.room.Vals, i), w.ix.Val(lo+i))
	}
}

// End puts the walk into the pool. There it must not lead to the index.
func (w *windows) End() {
	ix := w.ix
	w.room.Forget(ix.values.ValueType)
	w.Walk, w.alive, w.ix = Walk{}, nil, nil
	par.Put(ix.walks, w)
}
