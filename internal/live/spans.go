package live

import (
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/stall"
)

// spanCursor is a cursor that can read many entries at a time.
type spanCursor interface {
	// Span reads entries that come next, as Spans.Read has it. Values are of size
	// bytes, or codes where size is 0.
	Span(key order.Type, size, most int, to codeEdge) codeSpan
	Resume(key order.Probe)
	Undo()
}

// codeSpan is a span of entries from a spanCursor.
type codeSpan struct {
	keys, vals unsafe.Pointer
	n          int
	wide       bool // codes are of 64 bits
	last       bool
	guard      bplus.Guard
}

// Spans reads entries of a cursor many at a time.
type Spans struct {
	m  *Map
	c  spanCursor
	to codeEdge
}

// codeEdge is an edge between numbers, upwards or down.
type codeEdge struct {
	code             uint64
	open, none, down bool
}

// Spans returns a reader of the entries of a cursor up to an edge, in the
// direction of its last Move, and false if this cursor reads them one by one.
func (c Cursor) Spans(to index.Edge, down bool) (s Spans, ok bool) {
	sc, ok := c.c.(spanCursor)
	return Spans{c.m, sc, codeEdge{to.Key.Code, to.Open, to.None, down}}, ok
}

// Span is entries that come next, in key order whatever the direction. All were
// there at one time. Before each but the first is used, the guard has to say that
// it still comes next: if it does not, Resume says which one was the last. Their
// memory is theirs until the next call.
type Span struct {
	Keys  unsafe.Pointer // of as many keys of the map's type
	Vals  index.Column
	Guard bplus.Guard
	Last  bool // there are none after these, if the guard holds then
}

// Read reads the next span, of at most most entries; it has none if there are
// none. Where values lie apart, they come into room, and there are at most as
// many.
func (s *Spans) Read(most int, room index.Column) Span {
	if s.m.apart != nil {
		return s.readApart(min(most, room.Len()), room)
	}
	r := s.c.Span(s.m.key.Type, s.m.size, most, s.to)
	return Span{r.keys, index.ColumnAt(r.vals, r.n), r.guard, r.last}
}

// readApart is Read where values lie apart: they are valid if the leaf has not changed by then, or
// if no memory was used again.
func (s *Spans) readApart(most int, room index.Column) Span {
	var p epoch.Patience
	defer p.Done()
	for {
		gen := p.Begin(s.m.clock)
		r := s.c.Span(s.m.key.Type, 0, most, s.to)
		words := r.words()
		n := s.m.apart.few(words, s.to.down)
		lo, hi := 0, n
		if s.to.down {
			lo, hi = r.n-n, r.n
		}
		out := s.m.val.Part(room, 0, n)
		s.m.apart.getAll(out, words[lo:hi], nil)
		stall.At("live: span's values read")
		if n == 0 || r.guard.Holds() || s.m.gens.Current(gen) {
			keys := order.KeysAt(s.m.key.Type, r.keys, r.n).Slice(lo, hi)
			if n < r.n {
				last := keys.Probe(n - 1)
				if s.to.down {
					last = keys.Probe(0)
				}
				s.c.Resume(last)
				r.last = false
			}
			return Span{keys.At(), out, r.guard, r.last}
		}
		s.c.Undo()
	}
}

// words returns the values of a span, which are codes.
func (r *codeSpan) words() []uint64 {
	if r.n == 0 {
		return nil
	}
	if r.wide {
		return unsafe.Slice((*uint64)(r.vals), r.n)
	}
	wide := make([]uint64, r.n)
	for i, v := range unsafe.Slice((*uint32)(r.vals), r.n) {
		wide[i] = uint64(v)
	}
	return wide
}

// Resume makes Read go on behind a key of the last span.
func (s *Spans) Resume(key order.Probe) { s.c.Resume(key) }

func (c cursor[C]) Span(key order.Type, size, most int, to codeEdge) (s codeSpan) {
	ks, vs, guard := c.Cursor.Span(most)
	if !to.none && len(ks) > 0 {
		ks, vs, s.last = upToEdge(ks, vs, to)
	}
	if len(ks) == 0 {
		return codeSpan{last: true}
	}
	s.n, s.wide, s.guard = len(ks), order.CodeBits[C]() == 64, guard
	s.keys, s.vals = entriesInPlace(key, size, ks, vs)
	return s
}

// entriesInPlace makes codes the keys that they are the codes of, and values of size bytes,
// unless that is 0. It returns where they lie.
func entriesInPlace[C order.Code](key order.Type, size int, codes, vals []C) (ks, vs unsafe.Pointer) {
	ks, vs = unsafe.Pointer(unsafe.SliceData(codes)), unsafe.Pointer(unsafe.SliceData(vals))
	keysInPlace(order.KeysAt(key, ks, len(codes)), codes)
	if size > 0 && size*8 != order.CodeBits[C]() {
		storeVals(unsafe.Slice((*byte)(vs), size*len(vals)), size, vals)
	}
	return ks, vs
}

// keysInPlace makes codes the keys that they are the codes of.
func keysInPlace[C order.Code](keys order.Keys, codes []C) {
	if keys.Bits() == order.CodeBits[C]() {
		if keys.Raw() == nil { // else they are
			order.SetKeys(keys, codes)
		}
		return
	}
	narrow := unsafe.Slice((*uint32)(keys.At()), len(codes))
	for i, c := range codes {
		narrow[i] = uint32(c)
	}
	if keys.Raw() == nil {
		order.SetKeys(keys, narrow)
	}
}

// upToEdge leaves out entries beyond an edge, and reports whether there are any.
func upToEdge[C order.Code](keys, vals []C, to codeEdge) (ks, vs []C, beyond bool) {
	end, n := C(to.code), len(keys)
	if to.down {
		if first := keys[0]; first > end || first == end && !to.open {
			return keys, vals, false
		}
		i, equal := slices.BinarySearch(keys, end)
		if equal && to.open {
			i++
		}
		return keys[i:], vals[i:], true
	}
	if last := keys[n-1]; last < end || last == end && !to.open {
		return keys, vals, false
	}
	i, equal := slices.BinarySearch(keys, end)
	if equal && !to.open {
		i++
	}
	return keys[:i], vals[:i], true
}

func (c cursor[C]) Resume(key order.Probe) { c.Cursor.Resume(C(key.Code)) }
