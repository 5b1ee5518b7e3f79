package typed

import (
	"cmp"
	"io"

	"github.com/pando-index/pando"
	shown "github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/table/cols"
)

// index is an Index of given types. Its methods are compiled once for each pair
// of types, so they only call Pando: work on keys alone or on values alone is
// in functions of one type. Pando's index is a field with a name, because each
// method of an embedded one would be compiled here again.
type index[K pando.Key, V any] struct{ f *pando.Frozen[K, V] }

// inside is what a viewer asks for.
type inside = shown.Inside

func openFile[K pando.Key, V any](path string, opts []pando.Option) (Index, error) {
	f, err := pando.Open[K, V](path, options[V](opts)...)
	if err != nil {
		return nil, err
	}
	return &index[K, V]{f}, nil
}

func (ix *index[K, V]) Key() cols.Type           { t, _ := typeOf[K](); return t }
func (ix *index[K, V]) Value() (cols.Type, bool) { return typeOf[V]() }
func (ix *index[K, V]) Len() int                 { return ix.f.Len() }
func (ix *index[K, V]) Stats() pando.Stats       { return ix.f.Stats() }
func (ix *index[K, V]) Close() error             { return ix.f.Close() }

// Inside returns the view of the index that a viewer asks for.
func (ix *index[K, V]) Inside() *inside {
	see, _ := shown.InsideOf(ix.f)
	return see()
}

func (ix *index[K, V]) WriteTo(w io.Writer) (int64, error) { return ix.f.WriteTo(w) }

// keysOf returns the keys in a column.
func keysOf[K pando.Key](c *cols.Column) []K { return *cells[K](c) }

// room makes a column n long and gives its slice. Where c is nil, or T is in
// no column, the slice is one of its own.
func room[T any](c *cols.Column, n int) []T {
	t, ok := typeOf[T]()
	if c == nil || !ok {
		return make([]T, n)
	}
	c.Type, c.Null = t, nil
	s := cells[T](c)
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
	return *s
}

func (ix *index[K, V]) Get(keys, vals *cols.Column, found []bool) int {
	k := keysOf[K](keys)
	v := room[V](vals, len(k))
	hits := ix.f.GetBatch(k, v, found)
	return hits - clearNulls(v, found, keys.Null)
}

// clearNulls clears the results of null keys, and returns their number.
func clearNulls[V any](vals []V, found, null []bool) (n int) {
	var zero V
	for i, null := range null {
		if null && found[i] {
			vals[i], found[i] = zero, false
			n++
		}
	}
	return n
}

func (ix *index[K, V]) GetEach(keys *cols.Column) (hits int) {
	for _, k := range keysOf[K](keys) {
		if _, ok := ix.f.Get(k); ok {
			hits++
		}
	}
	return hits
}

func (ix *index[K, V]) GetAll(keys, vals *cols.Column) []int {
	k := keysOf[K](keys)
	r := ix.f.RangeBatch(k, k, 0)
	keepValues(vals, r.Vals, r.Offsets, keys.Null)
	return r.Offsets
}

// keepValues sets a column, which may be nil, to the values of ranges, without
// those of null keys. It makes the ranges of null keys empty.
func keepValues[V any](c *cols.Column, vals []V, offsets []int, null []bool) {
	if null != nil {
		vals = vals[:withoutNulls(vals, offsets, null)]
	}
	if c != nil {
		copy(room[V](c, len(vals)), vals)
	}
}

// withoutNulls takes the results of null keys out of ranges, and returns the
// number of values that are left.
func withoutNulls[V any](vals []V, offsets []int, null []bool) (kept int) {
	start := 0
	for i, null := range null[:len(offsets)-1] {
		end := offsets[i+1]
		if !null {
			kept += copy(vals[kept:], vals[start:end])
		}
		start, offsets[i+1] = end, kept
	}
	return kept
}

func (ix *index[K, V]) Ranges(lo, hi *cols.Column, limit int) int {
	return len(ix.f.RangeBatch(keysOf[K](lo), keysOf[K](hi), limit).Keys)
}

func (ix *index[K, V]) Rank(keys *cols.Column, ranks []int) { ix.f.RankBatch(keysOf[K](keys), ranks) }

func (ix *index[K, V]) Span(lo, hi *cols.Column) (first, end int) {
	first, end = 0, ix.Len()
	if lo != nil {
		first = ix.f.Rank(keysOf[K](lo)[0])
	}
	if hi != nil {
		k := keysOf[K](hi)[0]
		end = ix.f.Rank(k) + ix.f.Count(k, k)
	}
	return first, max(first, end)
}

func (ix *index[K, V]) Prefix(p string) (first, end int) {
	key := keysOf[K](&cols.Column{Field: cols.Field{Type: cols.String}, String: []string{p}})[0]
	first = ix.f.Rank(key)
	return first, first + ix.f.PrefixCount(key)
}

func (ix *index[K, V]) Entries(first, n int, keys, vals *cols.Column) {
	k, v := room[K](keys, n), room[V](vals, n)
	for i := range n {
		k[i], v[i] = ix.f.At(first + i)
	}
}

func (ix *index[K, V]) Sample(ranks []int, keys *cols.Column) {
	k := room[K](keys, len(ranks))
	for i, r := range ranks {
		k[i], _ = ix.f.At(r)
	}
}

func (ix *index[K, V]) Duplicates() (n, first int) {
	var r repeats[K]
	for k := range ix.f.All() {
		r.see(k)
	}
	return r.n, r.first
}

// repeats counts keys that are equal to the key before.
type repeats[K pando.Key] struct {
	seen     int
	last     K
	n, first int
}

func (r *repeats[K]) see(k K) {
	if r.seen > 0 && cmp.Compare(r.last, k) == 0 {
		if r.n == 0 {
			r.first = r.seen
		}
		r.n++
	}
	r.seen, r.last = r.seen+1, k
}
