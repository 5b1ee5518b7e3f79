package index

import (
	"reflect"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// NumberType returns how values of a type lie and are computed with. They must be
// numbers.
func NumberType(of reflect.Type) vector.Type {
	t, ok := vector.TypeOf(of)
	if !ok {
		panic("index: values are no numbers")
	}
	return t
}

// vectored is an engine that may have values on a device, which then sums up
// ranges of them, or counts them between bounds. It reports whether it has.
type vectored interface {
	summarize(t vector.Type, ranges []vector.Range, out []vector.Summary) bool
	histogram(t vector.Type, r vector.Range, bounds []uint64, counts []int) bool
}

// entries is the values of entries [first, end), as a vector.Source, and as a
// vector.Summarizer and Counter where a device has them as well.
type entries struct {
	ix         *Index
	first, end int
}

func (s *entries) Pieces() int { return vector.Pieces(s.end - s.first) }

func (s *entries) Read(piece int, r *vector.Reader) {
	lo := s.first + piece*vector.Piece
	s.ix.readValues(lo, min(lo+vector.Piece, s.end), r)
}

// Summarize asks the device, if there is one.
func (s *entries) Summarize(t vector.Type) (sum vector.Summary, ok bool) {
	e, can := s.ix.Engine.(vectored)
	if !can {
		return sum, false
	}
	out := make([]vector.Summary, 1)
	ok = e.summarize(t, []vector.Range{{First: s.first, N: s.end - s.first}}, out)
	return out[0], ok
}

// Histogram asks the device, if there is one.
func (s *entries) Histogram(t vector.Type, bounds []uint64, counts []int) bool {
	e, can := s.ix.Engine.(vectored)
	return can && e.histogram(t, vector.Range{First: s.first, N: s.end - s.first}, bounds, counts)
}

// Entries returns the values of entries [first, end), and false if these are
// not where they can be read many at a time.
func (ix *Index) Entries(first, end int) (src vector.Source, ok bool) {
	if ix.holder != nil && !ix.holder.Readable() {
		return nil, false
	}
	end = min(max(end, 0), ix.n) // they may be any if the index is being closed
	return &entries{ix, min(max(first, 0), end), end}, true
}

// readValues hands values [lo, hi) to r.
func (ix *Index) readValues(lo, hi int, r *vector.Reader) {
	if ix.holder != nil {
		ix.holder.ReadValues(lo, hi, r)
		return
	}
	r.Take(ix.values.Place(ix.values.rows, lo), hi-lo)
}

// readKept hands values [lo, hi) to r that lie in a layout: one behind the other,
// in ascending order of their addresses, or else with keys between.
func readKept(k layout.Valued, lo, hi, size int, r *vector.Reader) {
	first, last := k.Val(lo), k.Val(hi-1)
	if int(uintptr(last)-uintptr(first)) == (hi-1-lo)*size {
		r.Take(first, hi-lo)
		return
	}
	for lo < hi {
		n := min(r.Left(), hi-lo)
		k.CopyVals(r.Room(n), lo)
		r.Took(n)
		lo += n
	}
}

// SummarizeRanges sums up the values of many ranges, and returns false if these
// are not where they can be read many at a time.
func (ix *Index) SummarizeRanges(lo, hi order.Keys, out []vector.Summary) bool {
	if _, ok := ix.Entries(0, 0); !ok {
		return false
	}
	t, found := ix.values.Number(), ix.Ranges(lo, hi, 0)
	first := *found.First
	if e, can := ix.Engine.(vectored); can && e.summarize(t, found.spans(ix.n), out) {
		ix.Done(found)
		return true
	}
	sum := func(i, workers int) {
		src, _ := ix.Entries(first[i], first[i]+found.Offsets[i+1]-found.Offsets[i])
		out[i] = vector.Summarize(src, t, workers)
	}
	var large []int
	for i := range out {
		if found.Offsets[i+1]-found.Offsets[i] > vector.Piece {
			large = append(large, i)
		}
	}
	par.Run(ix.workers, (len(out)+rangesAtOnce-1)/rangesAtOnce, par.Func(func(p int) {
		for i := p * rangesAtOnce; i < min((p+1)*rangesAtOnce, len(out)); i++ {
			if found.Offsets[i+1]-found.Offsets[i] <= vector.Piece {
				sum(i, 1)
			}
		}
	}))
	for _, i := range large {
		sum(i, ix.workers)
	}
	ix.Done(found)
	return true
}

// spans returns which entries ranges have: within [0, n) even if ranks are
// garbage because the index is being closed.
func (r *Ranges) spans(n int) []vector.Range {
	spans := make([]vector.Range, len(*r.First))
	for i, first := range *r.First {
		first = min(max(first, 0), n)
		spans[i] = vector.Range{First: first, N: min(max(r.Offsets[i+1]-r.Offsets[i], 0), n-first)}
	}
	return spans
}

// rangesAtOnce is the number of ranges that a worker sums up at a time.
const rangesAtOnce = 16

// matches is which of the entries [first, end) satisfy a condition.
type matches struct {
	first, end int
	masks      []vector.Mask // one for each block
	before     []int         // number of those before each piece, and of all
}

// Len returns the number of entries that satisfy it.
func (m *matches) Len() int { return m.before[len(m.before)-1] }

// Select copies those of the entries [first, end) whose value satisfies a condition to the
// memory that room returns for them. Values must lie where Entries can read them. alive is
// asked before room, since what was read of a closed index is nonsense.
func (ix *Index) Select(alive Alive, first, end int, c vector.Condition, room func(n int) (order.Keys, Column)) {
	if s, ok := ix.Engine.(Selecter); ok {
		s.Select(first, end, c, room)
		return
	}
	found := ix.match(first, end, c)
	alive.Alive()
	keys, vals := room(found.Len())
	ix.copyMatches(found, keys, vals)
}

// match looks which of the entries [first, end) satisfy a condition. Values must
// lie where Entries can read them.
func (ix *Index) match(first, end int, c vector.Condition) *matches {
	src, _ := ix.Entries(first, end)
	m := &matches{first: first, end: end}
	m.masks, m.before = vector.Match(src, ix.values.Number(), c, ix.workers)
	return m
}

// copyMatches sets keys and vals to the entries that
// satisfy a condition.
func (ix *Index) copyMatches(m *matches, keys order.Keys, vals Column) {
	par.Run(ix.workers, len(m.before)-1, par.Func(func(p int) {
		c := matchCopier{ix: ix, keys: keys, vals: vals, at: m.before[p]}
		if keys.Bits() > 0 {
			c.someKeys, c.someVals = order.MakeKeys(keys.Type, vector.Block), ix.values.Zeros(vector.Block)
		}
		lo := m.first + p*vector.Piece
		for b := p * (vector.Piece / vector.Block); lo < min(m.first+(p+1)*vector.Piece, m.end); b++ {
			c.block(lo, min(vector.Block, m.end-lo), &m.masks[b])
			lo += vector.Block
		}
	}))
}

// matchCopier copies the entries of a piece.
type matchCopier struct {
	ix       *Index
	keys     order.Keys
	vals     Column
	at       int        // in keys and vals
	someKeys order.Keys // of a block; none for strings, which are not copied in vain
	someVals Column
}

// manyMatches is the number of matches in a block from which on all of it is
// copied, and then the matches are picked.
const manyMatches = 64

func (c *matchCopier) block(lo, n int, mask *vector.Mask) {
	val, ones := c.ix.values.ValueType, mask.Count(n)
	if ones < manyMatches || ones == n || c.someKeys.Len() == 0 {
		mask.Each(n, func(first, k int) {
			c.ix.CopyOut(lo+first, c.keys.Slice(c.at, c.at+k), val.Part(c.vals, c.at, c.at+k))
			c.at += k
		})
		return
	}
	c.ix.CopyOut(lo, c.someKeys.Slice(0, n), val.Part(c.someVals, 0, n))
	mask.Compress(c.keys.Slice(c.at, c.at+ones).At(), c.someKeys.At(), c.keys.Size(), n)
	mask.Compress(val.Place(c.vals, c.at), c.someVals.at, val.size, n)
	c.at += ones
}
