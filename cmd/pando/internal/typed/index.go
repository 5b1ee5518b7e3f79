package typed

import (
	"cmp"
	"io"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table"
)

// index is an Index with known types.
type index[K pando.Key, V any] struct{ *pando.Frozen[K, V] }

func openFile[K pando.Key, V any](path string, opts []pando.Option) (Index, error) {
	f, err := pando.Open[K, V](path, options[V](opts)...)
	if err != nil {
		return nil, err
	}
	return index[K, V]{f}, nil
}

func (ix index[K, V]) Key() table.Type { t, _ := typeOf[K](); return t }

func (ix index[K, V]) Value() (table.Type, bool) { return typeOf[V]() }

// keysOf returns the keys in a column.
func keysOf[K pando.Key](c *table.Column) []K { return *cells[K](c) }

// room makes a column n long and returns its slice. If c is nil, or T is not a
// column type, the slice is a new one.
func room[T any](c *table.Column, n int) []T {
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

func (ix index[K, V]) Get(keys, vals *table.Column, found []bool) int {
	k := keysOf[K](keys)
	v := room[V](vals, len(k))
	hits := ix.GetBatch(k, v, found)
	var zero V
	for i, null := range keys.Null {
		if null && found[i] {
			v[i], found[i] = zero, false
			hits--
		}
	}
	return hits
}

func (ix index[K, V]) GetEach(keys *table.Column) (hits int) {
	for _, k := range keysOf[K](keys) {
		if _, ok := ix.Frozen.Get(k); ok {
			hits++
		}
	}
	return hits
}

func (ix index[K, V]) GetAll(keys, vals *table.Column) []int {
	k := keysOf[K](keys)
	r := ix.RangeBatch(k, k, 0)
	if keys.Null != nil {
		withoutNulls(r, keys.Null)
	}
	if vals != nil {
		copy(room[V](vals, len(r.Vals)), r.Vals)
	}
	return r.Offsets
}

// withoutNulls removes what was found for null keys from the ranges.
func withoutNulls[K pando.Key, V any](r *pando.Ranges[K, V], null []bool) {
	kept, start := 0, 0
	for i := range r.Len() {
		end := r.Offsets[i+1]
		if !null[i] {
			kept += copy(r.Vals[kept:], r.Vals[start:end])
		}
		start, r.Offsets[i+1] = end, kept
	}
	r.Vals = r.Vals[:kept]
}

func (ix index[K, V]) Ranges(lo, hi *table.Column, limit int) int {
	return len(ix.RangeBatch(keysOf[K](lo), keysOf[K](hi), limit).Keys)
}

func (ix index[K, V]) Rank(keys *table.Column, ranks []int) { ix.RankBatch(keysOf[K](keys), ranks) }

func (ix index[K, V]) Span(lo, hi *table.Column) (first, end int) {
	first, end = 0, ix.Len()
	if lo != nil {
		first = ix.Frozen.Rank(keysOf[K](lo)[0])
	}
	if hi != nil {
		k := keysOf[K](hi)[0]
		end = ix.Frozen.Rank(k) + ix.Count(k, k)
	}
	return first, max(first, end)
}

func (ix index[K, V]) Prefix(p string) (first, end int) {
	key := keysOf[K](&table.Column{Field: table.Field{Type: table.String}, String: []string{p}})[0]
	first = ix.Frozen.Rank(key)
	return first, first + ix.PrefixCount(key)
}

func (ix index[K, V]) Entries(first, n int, keys, vals *table.Column) {
	k, v := room[K](keys, n), room[V](vals, n)
	for i := range n {
		k[i], v[i] = ix.At(first + i)
	}
}

func (ix index[K, V]) Sample(ranks []int, keys *table.Column) {
	k := room[K](keys, len(ranks))
	for i, r := range ranks {
		k[i], _ = ix.At(r)
	}
}

func (ix index[K, V]) Duplicates() (n, first int) {
	i, last := 0, *new(K)
	for k := range ix.All() {
		if i > 0 && cmp.Compare(last, k) == 0 {
			if n == 0 {
				first = i
			}
			n++
		}
		i, last = i+1, k
	}
	return n, first
}

func (ix index[K, V]) WriteTo(w io.Writer) (int64, error) { return ix.Frozen.WriteTo(w) }
