package index

import (
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// NumberType returns how values of type V lie and are computed with. V must be a
// number.
func NumberType[V any]() vector.Type {
	t, ok := vector.TypeOf(reflect.TypeFor[V]())
	if !ok {
		panic("index: values are no numbers")
	}
	return t
}

// entries is the values of entries [first, end), as a vector.Source. Where a
// device has them as well, it may be a vector.Summarizer, too.
type entries[V any] struct {
	ix         *Index[V]
	first, end int
}

func (s *entries[V]) Pieces() int { return vector.Pieces(s.end - s.first) }

func (s *entries[V]) Read(piece int, r *vector.Reader) {
	lo := s.first + piece*vector.Piece
	s.ix.readValues(lo, min(lo+vector.Piece, s.end), r)
}

// Entries returns the values of entries [first, end), and false if these are
// not where they can be read many at a time.
func (ix *Index[V]) Entries(first, end int) (src vector.Source, ok bool) {
	if m := ix.values.moment; m != nil && m.m.boxes != nil {
		return nil, false
	}
	end = min(max(end, 0), ix.n) // they may be any if the index is being closed
	return &entries[V]{ix, min(max(first, 0), end), end}, true
}

// readValues hands values [lo, hi) to r.
func (ix *Index[V]) readValues(lo, hi int, r *vector.Reader) {
	switch m := ix.values.moment; {
	case m != nil:
		m.at.readValues(lo, hi-lo, m.m.size, r)
	case ix.keeper != nil:
		readKept(ix.keeper, lo, hi, int(sizeOf[V]()), r)
	default:
		r.Take(unsafe.Pointer(&ix.values.rows[lo]), hi-lo)
	}
}

// readKept hands values [lo, hi) to r that lie in a layout: one behind the other,
// in ascending order of their addresses, or else with keys between.
func readKept(k keeper, lo, hi, size int, r *vector.Reader) {
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
func (ix *Index[V]) SummarizeRanges(lo, hi order.Keys, out []vector.Summary) bool {
	if _, ok := ix.Entries(0, 0); !ok {
		return false
	}
	t, found := NumberType[V](), ix.Ranges(lo, hi, 0)
	first := *found.First
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

// rangesAtOnce is the number of ranges that a worker sums up at a time.
const rangesAtOnce = 16

// Select returns where entries [first, end) are whose value satisfies a
// condition, for CopyRanges. Values must lie where Entries can read them, and not
// in a snapshot.
func (ix *Index[V]) Select(first, end int, c vector.Condition) Ranges {
	src, _ := ix.Entries(first, end)
	runs := vector.Find(src, NumberType[V](), c, ix.workers)
	r := Ranges{First: ix.ranks(len(runs)), Offsets: make([]int, len(runs)+1)}
	for i, run := range runs {
		(*r.First)[i] = first + run.First
		r.Offsets[i+1] = r.Offsets[i] + run.Len
	}
	r.Total = r.Offsets[len(runs)]
	return r
}

// Selected is entries that satisfy a condition, as a tree that changes has them.
type Selected struct{ keys, vals []uint64 }

// SelectMoment selects from entries [first, end) of a snapshot. It returns false
// for an index that is none.
func (ix *Index[V]) SelectMoment(first, end int, c vector.Condition) (out []Selected, ok bool) {
	m := ix.values.moment
	if m == nil {
		return nil, false
	}
	out = make([]Selected, vector.Pieces(end-first))
	par.Run(ix.workers, len(out), par.Func(func(p int) {
		lo := first + p*vector.Piece
		m.at.selectValues(lo, min(vector.Piece, end-lo), &selecting{t: NumberType[V](), size: m.m.size, cond: c, to: &out[p]})
	}))
	return out, true
}

// CopySelected returns how many entries were selected, after it has called room
// with that number for memory to copy them to.
func CopySelected[V any](parts []Selected, value func(bits uint64) V, room func(n int) (order.Keys, []V)) {
	n := 0
	for _, p := range parts {
		n += len(p.keys)
	}
	keys, vals := room(n)
	at := 0
	for _, p := range parts {
		setKeys(keys.Slice(at, at+len(p.keys)), p.keys)
		for i, b := range p.vals {
			vals[at+i] = value(b)
		}
		at += len(p.keys)
	}
}

// MomentValue returns a value of a snapshot as SelectMoment has it.
func (ix *Index[V]) MomentValue(bits uint64) V { return ix.values.moment.m.value(bits) }
