package pando

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// reach is what an iteration goes through.
type reach[K Key] struct {
	what   reachKind
	lo, hi K     // of a range; lo is a prefix
	scan   *scan // of a Scan
}

type reachKind uint8

const (
	reachAll reachKind = iota
	reachDown
	reachRange
	reachPrefix
	reachScan
)

// edges returns where an iteration begins and ends, and the most entries that it
// yields.
func (t *Tree[K, V]) edges(r *reach[K]) (from, to index.Edge, down bool, limit int) {
	limit = math.MaxInt
	switch r.what {
	case reachRange:
		return index.Edge{Key: t.probe(r.lo)}, index.Edge{Key: t.probe(r.hi)}, false, limit
	case reachPrefix:
		from, to = index.Edge{Key: t.probe(r.lo)}, index.NoEdge
		if end, ok := order.AfterPrefix(from.Key.Text); ok {
			to = index.Edge{Key: order.Probe{Text: end}, Open: true}
		}
		return from, to, false, limit
	case reachScan:
		lo, hi, some := t.m.Within(&r.scan.bounds)
		if r.scan.limited {
			limit = r.scan.limit
		}
		if !some {
			limit = 0
		}
		if r.scan.reverse {
			lo, hi = hi, lo
		}
		return lo, hi, r.scan.reverse, limit
	}
	return index.NoEdge, index.NoEdge, r.what == reachDown, limit
}

// walk is an iteration over a tree that is under way.
type walk[K Key, V any] struct {
	t     *Tree[K, V]
	to    index.Edge
	left  int // entries until the limit
	c     index.Cursor
	spans index.Spans
	some  bool // there is a cursor
	many  bool // entries are read many at a time, by spans
	last  bool // there are none after these
	down  bool

	// Entries to be yielded, from number at on by step, as long as the guard holds
	// after each.
	keys     []K
	vals     []V
	at, step int
	guard    bplus.Guard

	own *piece[K, V] // memory of entries that do not lie in the cursor's
}

// piece is memory of a single entry, or of some values that were in boxes.
type piece[K Key, V any] struct {
	keys [1]K
	vals []V
	used int // most values that were in it
}

// begin goes to the first entry.
func (w *walk[K, V]) begin(t *Tree[K, V], r reach[K]) {
	m := t.open()
	w.t, w.step = t, 1
	var from index.Edge
	if from, w.to, w.down, w.left = t.edges(&r); w.down {
		w.step = -1
	}
	if w.left == 0 || !from.None && m.Beyond(from.Key, w.to, w.down) {
		w.last = true
		return
	}
	w.c, w.some = m.Cursor(), true
	w.last = !w.c.Move(from, w.down)
	if w.spans, w.many = w.c.Spans(w.to, w.down); !w.many || w.spans.Boxed() {
		w.own = t.pieces.Get()
	}
}

// next reads the entries that are yielded next, and reports whether there are
// any. If there are none, the iteration has stopped.
func (w *walk[K, V]) next() bool {
	if n := len(w.keys); n > 0 {
		used := w.at
		if w.down {
			used = n - 1 - w.at
		}
		w.left -= used
		// Others may have come between the entries, or after the last of all.
		if used < n || w.last && w.left > 0 && !w.guard.Holds() {
			w.spans.Resume(w.t.probe(w.keys[w.at-w.step]))
			w.last = false
		}
	}
	if w.last || w.left == 0 || !w.read() {
		w.stop()
		return false
	}
	if w.at = 0; w.down {
		w.at = len(w.keys) - 1
	}
	return true
}

// read reads the entries that come next, and reports whether there are any.
func (w *walk[K, V]) read() bool {
	if !w.many {
		return w.readOne()
	}
	var room []V
	if w.own != nil {
		room = w.own.room(boxedRoom[V]())
	}
	s := w.spans.Read(w.left, index.ColumnOf(room))
	w.t.done()
	n := s.Vals.Len()
	w.keys, w.vals = unsafe.Slice((*K)(s.Keys), n), index.SliceOf[V](s.Vals)
	w.guard, w.last = s.Guard, s.Last
	if w.own != nil {
		w.own.used = max(w.own.used, n)
	}
	return n > 0
}

// readOne reads the one entry that comes next.
func (w *walk[K, V]) readOne() bool {
	k, x, ok := w.c.Next()
	v := index.ValueAs[V](x)
	w.t.done()
	if !ok || w.t.m.Beyond(k, w.to, w.down) {
		return false
	}
	w.keys, w.vals, w.own.used = w.own.keys[:], w.own.room(1), 1
	w.keys[0], w.vals[0] = w.t.keyOf(k), v
	return true
}

// stop gives memory back. An iteration that a panic stops leaves it to the
// garbage collector.
func (w *walk[K, V]) stop() {
	if p := w.own; p != nil {
		clear(p.keys[:]) // what keys and values point to is not ours to keep
		clear(p.vals[:p.used])
		p.used = 0
		w.t.pieces.Put(p)
		w.own = nil
	}
	if w.some {
		w.c.Done()
	}
}

// room returns memory for n values.
func (p *piece[K, V]) room(n int) []V {
	if len(p.vals) < n {
		p.vals = make([]V, n)
	}
	return p.vals[:n]
}

// boxedRoom returns the number of values that are copied out of their boxes
// together: 4 KiB of them, as far as there are so many.
func boxedRoom[V any]() int {
	var v V
	return int(max(1, min(64, 4096/unsafe.Sizeof(v))))
}
