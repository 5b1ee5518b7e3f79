package live

import (
	"math"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// walk is an iteration over a map. It reads the spans of a cursor, or entry by entry
// where the cursor has none.
type walk struct {
	index.Walk
	alive index.Alive
	m     *Map
	to    index.Edge
	left  int // entries until the limit
	c     Cursor
	spans Spans
	some  bool // there is a cursor
	many  bool // entries are read many at a time, by spans
	last  bool // there are none after these
	whole bool // the entries are a range that was read when the walk began
	room  index.Room
	few   fewRoom
}

// Walk begins an iteration over the entries between two edges, of which there are at
// most limit.
func (m *Map) Walk(alive index.Alive, from, to index.Edge, down bool, limit int) *index.Walk {
	w := par.Get(m.walks)
	w.alive, w.m, w.to, w.left, w.last, w.many, w.whole = alive, m, to, limit, false, false, false
	w.Begin(w, down)
	switch {
	case limit == 0 || !from.None && m.Beyond(from.Key, to, down):
		w.last = true
	case m.takesShort(from, to, down, limit):
		m.short.readShort(w, from)
	default:
		w.move(from)
	}
	return &w.Walk
}

// move gets a cursor for the walk and moves it to an edge.
func (w *walk) move(from index.Edge) {
	w.cursor()
	w.last = !w.c.Move(from, w.Step < 0)
}

// cursor gets a cursor for the walk.
func (w *walk) cursor() {
	w.c, w.some = w.m.Cursor(), true
	w.spans, w.many = w.c.Spans(w.to, w.Step < 0)
}

// More reads the next entries.
func (w *walk) More() bool {
	if w.whole {
		w.whole, w.last = false, true
		w.alive.Alive()
		return w.N > 0
	}
	if w.N > 0 {
		used := w.At
		if w.Step < 0 {
			used = w.N - 1 - w.At
		}
		w.left -= used
		// Others may have come between the entries, or after the last of all.
		if used < w.N || w.last && w.left > 0 && !w.Guard.Holds() {
			w.last = false
			if key := order.KeysAt(w.m.key.Type, w.Keys, w.N).Probe(w.At - w.Step); w.some {
				w.spans.Resume(key)
			} else {
				w.move(index.Edge{Key: key, Open: true})
			}
		}
	}
	if w.last || w.left == 0 {
		return false
	}
	if !w.many {
		return w.readOne()
	}
	var room index.Column
	if w.m.apart != nil {
		if w.room.Vals.Len() == 0 {
			w.room.Vals = w.m.val.Zeros(w.m.val.AtOnce(index.LastWindow))
		}
		room = w.room.Vals
	}
	s := w.spans.Read(w.left, room)
	w.alive.Alive()
	w.Keys, w.Vals, w.N = s.Keys, s.Vals.At(), s.Vals.Len()
	w.Guard, w.last = s.Guard, s.Last
	if w.m.apart != nil {
		w.room.Used = max(w.room.Used, w.N)
	}
	return w.N > 0
}

// readOne reads the one entry that comes next.
func (w *walk) readOne() bool {
	k, v, ok := w.c.Next()
	w.alive.Alive()
	if !ok || w.m.Beyond(k, w.to, w.Step < 0) {
		return false
	}
	if w.room.Keys.Len() == 0 {
		w.room.Keys, w.room.Vals = index.MakeKeys(w.m.key.Type, 1), w.m.val.Zeros(1)
	}
	w.room.Keys.SetProbe(0, k)
	w.m.val.Store(w.room.Vals.At(), v)
	w.Keys, w.Vals, w.N, w.room.Used = w.room.Keys.At(), w.room.Vals.At(), 1, max(w.room.Used, 1)
	return true
}

// End puts the walk into the pool. There it must not lead to the map.
func (w *walk) End() {
	if w.some {
		w.c.Done()
	}
	m := w.m
	w.room.Forget(m.val)
	w.Walk, w.alive, w.m, w.c, w.spans, w.to, w.some = index.Walk{}, nil, nil, Cursor{}, Spans{}, index.Edge{}, false
	par.Put(m.walks, w)
}

// EachRange reads ranges one by one, on all workers: range i has the entries from lo[i]
// to hi[i], the first limit of them where limit is above 0. It sets offsets, and copies
// the entries to the memory that room returns for them.
func (m *Map) EachRange(alive index.Alive, lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, index.Column)) {
	const piece = 64
	n, most := lo.Len(), limit
	if limit <= 0 {
		most = math.MaxInt
	}
	parts := make([]gathered, (n+piece-1)/piece)
	par.Run(m.workers, len(parts), par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			before := parts[p].n
			for w := m.Walk(alive, index.Edge{Key: lo.Probe(i)}, index.Edge{Key: hi.Probe(i)}, false, most); w.Next(); {
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
			m.val.CopyAll(m.val.Part(vals, at, at+b.n), m.val.Part(b.vals, 0, b.n), 1)
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
	vals index.Column
	n    int // entries that are in it
}

// gatherAtOnce is the entries that a block has room for, unless they are large.
const gatherAtOnce = 512

// add copies the entries that a walk has read, as far as they are next to each other.
func (g *gathered) add(m *Map, w *index.Walk) {
	n := w.N
	if n > 1 && !w.Guard.Holds() {
		n = 1 // others have come between them, and the walk reads on from here
	}
	last := len(g.blocks) - 1
	if last < 0 || g.blocks[last].n+n > g.blocks[last].vals.Len() {
		size := max(n, m.val.AtOnce(gatherAtOnce))
		g.blocks, last = append(g.blocks, gatheredBlock{index.MakeKeys(m.key.Type, size), m.val.Zeros(size), 0}), last+1
	}
	b := &g.blocks[last]
	b.keys.Slice(b.n, b.n+n).Copy(order.KeysAt(m.key.Type, w.Keys, n))
	m.val.CopyAll(m.val.Part(b.vals, b.n, b.n+n), index.ColumnAt(w.Vals, n), 1)
	b.n += n
	g.n += n
	w.At = n
}
