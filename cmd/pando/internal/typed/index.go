package typed

import (
	"io"
	"reflect"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/table/cols"
)

// untyped is an Index, over an index without types.
type untyped struct {
	types Types
	key   keyKind
	typ   reflect.Type // of keys
	val   kind
	h     *index.Handle
}

// newIndex makes an Index of the index that build makes.
func newIndex(t Types, build func(key index.KeyType, val *index.ValueType) (*index.Index, error)) (Index, error) {
	ix := &untyped{types: t, key: kindOf(t.Key), val: t.value(), h: new(index.Handle)}
	key, typ := ix.key.key()
	own, err := build(key, ix.val.value())
	if err != nil {
		return nil, err
	}
	ix.typ = typ
	ix.h.Begin(key, own)
	return ix, nil
}

func (ix *untyped) Key() cols.Type           { return ix.types.Key }
func (ix *untyped) Value() (cols.Type, bool) { return ix.types.Value, ix.types.Valued }
func (ix *untyped) Len() int                 { return ix.h.Open().Len() }
func (ix *untyped) Close() error             { return ix.h.Close() }
func (ix *untyped) Inside() *index.Inside    { return ix.h.Inside(ix.typ) }

func (ix *untyped) WriteTo(w io.Writer) (int64, error) { return ix.h.WriteTo(w) }

func (ix *untyped) Stats() pando.Stats {
	s := ix.h.Stats()
	where, _ := pando.ParseDevice(s.Device.String())
	out := pando.Stats{
		Len: s.Len, Device: where, Reason: s.Reason, Path: s.Path, Levels: s.Levels, Fanout: s.Fanout, Workers: s.Workers,
		InnerBytes: s.InnerBytes, LeafBytes: s.LeafBytes, ValueBytes: s.ValueBytes,
		DeviceBytes: s.DeviceBytes, HeapBytes: s.HeapBytes, TotalBytes: s.TotalBytes,
	}
	for _, l := range pando.Layouts() {
		if l.String() == s.Layout {
			out.Layout = l
		}
	}
	return out
}

func (ix *untyped) Get(keys, vals *cols.Column, found []bool) int {
	k := ix.key.keys(keys)
	v := ix.val.room(vals, k.Len())
	hits := ix.h.GetBatch(k, v, found)
	for i, null := range keys.Null {
		if null && found[i] {
			found[i] = false
			hits--
			t := ix.val.value()
			t.Clear(t.Part(v, i, i+1))
		}
	}
	return hits
}

func (ix *untyped) GetEach(keys *cols.Column) (hits int) {
	k := ix.key.keys(keys)
	for i := range k.Len() {
		own := ix.h.Open()
		if _, ok := own.Get(k.Probe(i)); ok {
			hits++
		}
		ix.h.Done(own)
	}
	return hits
}

func (ix *untyped) GetAll(keys, vals *cols.Column) []int {
	k := ix.key.keys(keys)
	own, found := ix.h.RangeBatch(k, k, 0)
	offsets := found.Offsets
	out := ix.val.room(vals, found.Total)
	ix.h.CopyRanges(own, found, ix.key.keys(ix.someKeys(found.Total)), out)
	if keys.Null != nil {
		ix.val.room(vals, ix.withoutNulls(out, offsets, keys.Null))
	}
	return offsets
}

// someKeys returns a column for n keys.
func (ix *untyped) someKeys(n int) *cols.Column {
	c := new(cols.Column)
	ix.key.room(c, n)
	return c
}

// withoutNulls takes the results of null keys out of ranges, whose offsets it changes, and
// returns the number of values that are left.
func (ix *untyped) withoutNulls(vals index.Column, offsets []int, null []bool) (kept int) {
	start, t := 0, ix.val.value()
	for i, null := range null[:len(offsets)-1] {
		end := offsets[i+1]
		if n := end - start; !null && n > 0 {
			if kept < start {
				t.CopyAll(t.Part(vals, kept, kept+n), t.Part(vals, start, end), 1)
			}
			kept += n
		}
		start, offsets[i+1] = end, kept
	}
	return kept
}

func (ix *untyped) Ranges(lo, hi *cols.Column, limit int) int {
	own, found := ix.h.RangeBatch(ix.key.keys(lo), ix.key.keys(hi), limit)
	n := found.Total
	ix.h.CopyRanges(own, found, ix.key.keys(ix.someKeys(n)), ix.val.room(nil, n))
	return n
}

func (ix *untyped) Rank(keys *cols.Column, ranks []int) { ix.h.RankBatch(ix.key.keys(keys), ranks) }

func (ix *untyped) Span(lo, hi *cols.Column) (first, end int) {
	own := ix.h.Open()
	first, end = 0, own.Len()
	if lo != nil {
		first, _ = own.Engine.Seek(ix.key.keys(lo).Probe(0))
	}
	if hi != nil {
		end = own.Engine.After(ix.key.keys(hi).Probe(0))
	}
	ix.h.Done(own)
	return first, max(first, end)
}

func (ix *untyped) Prefix(p string) (first, end int) {
	own := ix.h.Open()
	first, end = own.Prefix(p)
	ix.h.Done(own)
	return first, end
}

func (ix *untyped) Entries(first, n int, keys, vals *cols.Column) {
	if keys == nil {
		keys = new(cols.Column)
	}
	v := ix.val.room(vals, n)
	ix.key.room(keys, n)
	own := ix.h.Open()
	own.CopyOut(first, ix.key.keys(keys), v)
	ix.h.Done(own)
}

func (ix *untyped) Sample(ranks []int, keys *cols.Column) {
	ix.key.room(keys, len(ranks))
	k := ix.key.keys(keys)
	for i, r := range ranks {
		own := ix.h.MustAt(r)
		k.SetProbe(i, own.Engine.Key(r))
		ix.h.Done(own)
	}
}

func (ix *untyped) Duplicates() (n, first int) {
	const piece = 4096
	some := ix.someKeys(piece)
	k, own := ix.key.keys(some), ix.h.Open()
	last := order.Probe{}
	for lo := 0; lo < own.Len(); lo += piece {
		part := k.Slice(0, min(piece, own.Len()-lo))
		own.Engine.CopyKeys(lo, part)
		for i := range part.Len() {
			key := part.Probe(i)
			if lo+i > 0 && ix.h.Key.Compare(last, key) == 0 {
				if n == 0 {
					first = lo + i
				}
				n++
			}
			last = key
		}
	}
	ix.h.Done(own)
	return n, first
}

// ends returns the keys of a range; a nil bound is open.
func (ix *untyped) ends(lo, hi *cols.Column) (from, to order.Probe) {
	own := ix.h.Open()
	if n := own.Len(); n > 0 {
		from, to = own.Engine.Key(0), own.Engine.Key(n-1)
	}
	ix.h.Done(own)
	if lo != nil {
		from = ix.key.keys(lo).Probe(0)
	}
	if hi != nil {
		to = ix.key.keys(hi).Probe(0)
	}
	return from, to
}

func (ix *untyped) Summarize(lo, hi *cols.Column) (Summary, bool) {
	kind, ok := ix.val.(numberKind)
	if !ok {
		return Summary{}, false
	}
	s, ok := ix.h.Summarize(ix.ends(lo, hi))
	return kind.summary(&s), ok
}

func (ix *untyped) Histogram(lo, hi, bounds *cols.Column, counts []int) bool {
	kind, ok := ix.val.(numberKind)
	if !ok {
		return false
	}
	from, to := ix.ends(lo, hi)
	return ix.h.Histogram(from, to, kind.bits(bounds), counts[:bounds.Len()+1])
}
