package index

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Walk is an iteration that is under way, over an index or a map. It hands out entries
// many at a time, without their types: the loop over them is the face's, and small
// enough to become a part of the caller's.
type Walk struct {
	// Entries to be yielded, from number At on by Step, as long as Guard holds after
	// each. N is their number, Keys and Vals are where they lie.
	Keys, Vals  unsafe.Pointer
	N, At, Step int
	Guard       bplus.Guard

	alive Alive
	down  bool

	ix         *Index // unless it is over a map
	first, end int    // its entries that are left
	size       int    // most entries of the next window

	m     *Map
	to    Edge
	left  int // entries until the limit
	c     Cursor
	spans Spans
	some  bool // there is a cursor
	many  bool // entries are read many at a time, by spans
	last  bool // there are none after these

	// Memory of entries that do not lie in a cursor's: a window of an index, a single
	// entry of a map, or values that were in boxes.
	keys order.Keys
	vals Column
	used int // most entries that were in it
}

// Alive is an index or a tree of the face.
type Alive interface {
	Alive() // panics if it was closed
}

// A walk over an index copies entries out window by window, the first of firstWindow
// entries so that a short one stays cheap.
const (
	fewEntries  = 4
	firstWindow = 8
	lastWindow  = 64
)

// atOnce returns the number of values of size bytes that are copied together: many,
// but no more than 16 KiB of them.
func atOnce(many, size int) int { return max(1, min(many, 16<<10/max(size, 1))) }

// Walk begins an iteration over entries [first, end), or down from the last of them.
func (ix *Index) Walk(alive Alive, first, end int, down bool) *Walk {
	w := ix.walks.Get()
	if w.vals.n == 0 {
		most := atOnce(lastWindow, ix.values.size)
		w.keys, w.vals = MakeKeys(ix.key.Type, most), ix.values.Zeros(most)
	}
	w.alive, w.ix, w.first, w.end, w.size, w.down = alive, ix, first, end, min(firstWindow, w.vals.n), down
	if w.Step = 1; down {
		w.Step = -1
	}
	return w
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
		keys.SetProbe(to, ix.Key(lo+i))
		switch size {
		case 4:
			*(*uint32)(unsafe.Add(vals, 4*to)) = uint32(ix.Val(lo + i).Bits)
		case 8:
			*(*uint64)(unsafe.Add(vals, 8*to)) = ix.Val(lo + i).Bits
		}
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

// Walk begins an iteration over the entries between two edges, of which there are at
// most limit.
func (m *Map) Walk(alive Alive, from, to Edge, down bool, limit int) *Walk {
	w := m.walks.Get()
	w.alive, w.m, w.to, w.down, w.left, w.last, w.many = alive, m, to, down, limit, false, false
	if w.Step = 1; down {
		w.Step = -1
	}
	if limit == 0 || !from.None && m.Beyond(from.Key, to, down) {
		w.last = true
		return w
	}
	w.c, w.some = m.Cursor(), true
	w.last = !w.c.Move(from, down)
	w.spans, w.many = w.c.Spans(to, down)
	return w
}

// Next reads the entries that are yielded next, and reports whether there are
// any. If there are none, the iteration has stopped.
func (w *Walk) Next() bool {
	more := false
	if w.ix != nil {
		more = w.nextWindow()
	} else {
		more = w.nextSpan()
	}
	if !more {
		w.Stop()
		return false
	}
	if w.At = 0; w.down {
		w.At = w.N - 1
	}
	return true
}

// nextWindow reads the next window of an index.
func (w *Walk) nextWindow() bool {
	n := min(w.size, w.end-w.first)
	if n <= 0 {
		return false
	}
	w.size = min(2*w.size, w.vals.n)
	lo := w.first
	if w.down {
		w.end -= n
		lo = w.end
	} else {
		w.first += n
	}
	w.copyOut(lo, n)
	w.used = max(w.used, n)
	w.alive.Alive()
	w.Keys, w.Vals, w.N = w.keys.At(), w.vals.at, n
	return true
}

// copyOut copies n entries from lo on to the memory of the walk: a few one by one, which
// takes less than to begin a copy of many.
func (w *Walk) copyOut(lo, n int) {
	if n > fewEntries {
		w.ix.CopyOut(lo, w.keys.Slice(0, n), w.ix.values.part(w.vals, 0, n))
		return
	}
	for i := range n {
		w.keys.SetProbe(i, w.ix.Key(lo+i))
		w.ix.values.store(w.ix.values.place(w.vals, i), w.ix.Val(lo+i))
	}
}

// nextSpan reads the next entries of a map.
func (w *Walk) nextSpan() bool {
	if w.N > 0 {
		used := w.At
		if w.down {
			used = w.N - 1 - w.At
		}
		w.left -= used
		// Others may have come between the entries, or after the last of all.
		if used < w.N || w.last && w.left > 0 && !w.Guard.Holds() {
			w.spans.Resume(order.KeysAt(w.m.key.Type, w.Keys, w.N).Probe(w.At - w.Step))
			w.last = false
		}
	}
	if w.last || w.left == 0 {
		return false
	}
	if !w.many {
		return w.readOne()
	}
	var room Column
	if w.m.boxes != nil {
		if w.vals.n == 0 {
			w.vals = w.m.val.Zeros(atOnce(lastWindow, w.m.val.size))
		}
		room = w.vals
	}
	s := w.spans.Read(w.left, room)
	w.alive.Alive()
	w.Keys, w.Vals, w.N = s.Keys, s.Vals.at, s.Vals.n
	w.Guard, w.last = s.Guard, s.Last
	if w.m.boxes != nil {
		w.used = max(w.used, w.N)
	}
	return w.N > 0
}

// readOne reads the one entry that comes next in a map.
func (w *Walk) readOne() bool {
	k, v, ok := w.c.Next()
	w.alive.Alive()
	if !ok || w.m.Beyond(k, w.to, w.down) {
		return false
	}
	if w.keys.Len() == 0 {
		w.keys, w.vals = MakeKeys(w.m.key.Type, 1), w.m.val.Zeros(1)
	}
	w.keys.SetProbe(0, k)
	w.m.val.store(w.vals.at, v)
	w.Keys, w.Vals, w.N, w.used = w.keys.At(), w.vals.at, 1, max(w.used, 1)
	return true
}

// Stop gives memory back. An iteration that a panic stops leaves it to the
// garbage collector.
func (w *Walk) Stop() {
	if w == nil {
		return
	}
	if w.some {
		w.c.Done()
	}
	var pool par.Pool[Walk]
	var val *ValueType
	if w.ix != nil {
		pool, val = w.ix.walks, w.ix.values.ValueType
	} else {
		pool, val = w.m.walks, w.m.val
	}
	if w.used > 0 { // the pool must not keep the targets of keys and values
		if w.keys.Len() > 0 && w.keys.Bits() == 0 {
			clear(w.keys.Strings()[:w.used])
		}
		if !val.free {
			val.wipe(w.vals.at, w.used)
		}
	}
	// A walk in the pool must not lead to the index.
	w.alive, w.ix, w.m, w.c, w.spans, w.to = nil, nil, nil, Cursor{}, Spans{}, Edge{}
	w.Guard, w.Keys, w.Vals, w.N, w.used, w.some = bplus.Guard{}, nil, nil, 0, 0, false
	pool.Put(w)
}

// EachRange reads ranges one by one, on all workers: range i has the entries from lo[i]
// to hi[i], the first limit of them where limit is above 0. It sets offsets, and copies
// the entries to the memory that room returns for them.
func (m *Map) EachRange(alive Alive, lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, Column)) {
	const piece = 64
	n, most := lo.Len(), limit
	if limit <= 0 {
		most = math.MaxInt
	}
	parts := make([]gathered, (n+piece-1)/piece)
	par.Run(m.workers, len(parts), par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			before := parts[p].n
			for w := m.Walk(alive, Edge{Key: lo.Probe(i)}, Edge{Key: hi.Probe(i)}, false, most); w.Next(); {
				parts[p].add(m, w)
			}
			offsets[i+1] = parts[p].n - before
		}
	}))
	for i := range n {
		offsets[i+1] += offsets[i]
	}
	keys, vals := room(offsets[n])
	at := 0
	for _, p := range parts {
		for _, b := range p.blocks {
			keys.Slice(at, at+b.n).Copy(b.keys.Slice(0, b.n))
			m.val.copyAll(m.val.part(vals, at, at+b.n), m.val.part(b.vals, 0, b.n), 1)
			at += b.n
		}
	}
}

// gathered is entries that a walk has handed out, in blocks.
type gathered struct {
	n      int
	blocks []gatheredBlock
}

type gatheredBlock struct {
	keys order.Keys
	vals Column
	n    int // entries that are in it
}

// gatherAtOnce is the entries that a block has room for, unless they are large.
const gatherAtOnce = 512

// add copies the entries that a walk has read, as far as they are next to each other.
func (g *gathered) add(m *Map, w *Walk) {
	n := w.N
	if n > 1 && !w.Guard.Holds() {
		n = 1 // others have come between them, and the walk reads on from here
	}
	last := len(g.blocks) - 1
	if last < 0 || g.blocks[last].n+n > g.blocks[last].vals.n {
		size := max(n, atOnce(gatherAtOnce, m.val.size))
		g.blocks, last = append(g.blocks, gatheredBlock{MakeKeys(m.key.Type, size), m.val.Zeros(size), 0}), last+1
	}
	b := &g.blocks[last]
	b.keys.Slice(b.n, b.n+n).Copy(order.KeysAt(m.key.Type, w.Keys, n))
	m.val.copyAll(m.val.part(b.vals, b.n, b.n+n), Column{w.Vals, n}, 1)
	b.n += n
	g.n += n
	w.At = n
}
