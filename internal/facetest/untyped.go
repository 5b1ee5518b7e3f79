package facetest

import (
	"iter"

	"github.com/pando-index/pando"
)

// An index is compared with its model without their types: only index and model are
// compiled anew for each pair of types, and the code that compares them once. Where it
// says any, a key is a K and a value is a V.

// index is what is asked of an index.
type index interface {
	Len() int
	lenInStats() int
	Get(k any) (any, bool)
	Has(k any) bool
	Rank(k any) int
	At(i int) (any, any)
	Min() (any, any, bool)
	Max() (any, any, bool)
	Floor(k any) (any, any, bool)
	Ceil(k any) (any, any, bool)
	All() iter.Seq2[any, any]
	Backward() iter.Seq2[any, any]
	Range(lo, hi any) iter.Seq2[any, any]
	Scan(opts []pando.ScanOption) iter.Seq2[any, any]
	Cursor() cursor
	Count(lo, hi any) int
	Prefix(p any) iter.Seq2[any, any]
	PrefixCount(p any) int
	GetBatch(keys, vals []any, found []bool) (hits int)
	GetBatchBytes(data []byte, offsets []int32, vals []any, found []bool) (hits int)
	RankBatch(keys []any, ranks []int)
	CountBatch(lo, hi []any, counts []int)
	// RangeBatch returns a slice of keys and one of values for each range, and how many
	// there are in all.
	RangeBatch(lo, hi []any, limit int) (keys, vals [][]any, allKeys, allVals int)
}

// cursor is a pando.Cursor.
type cursor interface {
	Seek(k any) bool
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() any
	Value() any
	AppendKey(dst []byte) []byte
}

// model is what is asked of a model.
type model interface {
	size() int
	entry(i int) (any, any)
	none() (any, any) // a key and a value that are zero
	rank(k any) int
	after(k any) int
	get(k any) (any, bool)
	is(i int, k, v any) bool
	same(a, b any) bool
	// bounds returns From, After, To and Before a key.
	bounds(k any) [4]pando.ScanOption
}

type anyIndex[K pando.Key, V any] struct{ ix pando.Index[K, V] }

func (x *anyIndex[K, V]) Len() int                      { return x.ix.Len() }
func (x *anyIndex[K, V]) lenInStats() int               { return x.ix.Stats().Len }
func (x *anyIndex[K, V]) Get(k any) (any, bool)         { return anyFound(x.ix.Get(k.(K))) }
func (x *anyIndex[K, V]) Has(k any) bool                { return x.ix.Has(k.(K)) }
func (x *anyIndex[K, V]) Rank(k any) int                { return x.ix.Rank(k.(K)) }
func (x *anyIndex[K, V]) At(i int) (any, any)           { return anyPair(x.ix.At(i)) }
func (x *anyIndex[K, V]) Min() (any, any, bool)         { return anyEntry(x.ix.Min()) }
func (x *anyIndex[K, V]) Max() (any, any, bool)         { return anyEntry(x.ix.Max()) }
func (x *anyIndex[K, V]) Floor(k any) (any, any, bool)  { return anyEntry(x.ix.Floor(k.(K))) }
func (x *anyIndex[K, V]) Ceil(k any) (any, any, bool)   { return anyEntry(x.ix.Ceil(k.(K))) }
func (x *anyIndex[K, V]) All() iter.Seq2[any, any]      { return anySeq(x.ix.All()) }
func (x *anyIndex[K, V]) Backward() iter.Seq2[any, any] { return anySeq(x.ix.Backward()) }
func (x *anyIndex[K, V]) Cursor() cursor                { return &anyCursor[K, V]{x.ix.Cursor()} }
func (x *anyIndex[K, V]) Count(lo, hi any) int          { return x.ix.Count(lo.(K), hi.(K)) }
func (x *anyIndex[K, V]) PrefixCount(p any) int         { return x.ix.PrefixCount(p.(K)) }

func (x *anyIndex[K, V]) Range(lo, hi any) iter.Seq2[any, any] {
	return anySeq(x.ix.Range(lo.(K), hi.(K)))
}

func (x *anyIndex[K, V]) Prefix(p any) iter.Seq2[any, any] { return anySeq(x.ix.Prefix(p.(K))) }

func (x *anyIndex[K, V]) Scan(opts []pando.ScanOption) iter.Seq2[any, any] {
	return anySeq(x.ix.Scan(opts...))
}

func (x *anyIndex[K, V]) GetBatch(keys, vals []any, found []bool) int {
	typed := typedAs[V](vals)
	hits := x.ix.GetBatch(typedAs[K](keys), typed, found)
	copy(vals, anys(typed))
	return hits
}

func (x *anyIndex[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []any, found []bool) int {
	typed := typedAs[V](vals)
	of := x.ix.(interface {
		GetBatchBytes([]byte, []int32, []V, []bool) int
	})
	hits := of.GetBatchBytes(data, offsets, typed, found)
	copy(vals, anys(typed))
	return hits
}

func (x *anyIndex[K, V]) RankBatch(keys []any, ranks []int) {
	x.ix.RankBatch(typedAs[K](keys), ranks)
}

func (x *anyIndex[K, V]) CountBatch(lo, hi []any, counts []int) {
	x.ix.CountBatch(typedAs[K](lo), typedAs[K](hi), counts)
}

func (x *anyIndex[K, V]) RangeBatch(lo, hi []any, limit int) (keys, vals [][]any, allKeys, allVals int) {
	r := x.ix.RangeBatch(typedAs[K](lo), typedAs[K](hi), limit)
	for i := range r.Len() {
		k, v := r.At(i)
		keys, vals = append(keys, anys(k)), append(vals, anys(v))
	}
	return keys, vals, len(r.Keys), len(r.Vals)
}

type anyCursor[K pando.Key, V any] struct{ c pando.Cursor[K, V] }

func (c *anyCursor[K, V]) Seek(k any) bool             { return c.c.Seek(k.(K)) }
func (c *anyCursor[K, V]) First() bool                 { return c.c.First() }
func (c *anyCursor[K, V]) Last() bool                  { return c.c.Last() }
func (c *anyCursor[K, V]) Next() bool                  { return c.c.Next() }
func (c *anyCursor[K, V]) Prev() bool                  { return c.c.Prev() }
func (c *anyCursor[K, V]) Valid() bool                 { return c.c.Valid() }
func (c *anyCursor[K, V]) AppendKey(dst []byte) []byte { return c.c.AppendKey(dst) }
func (c *anyCursor[K, V]) Key() any                    { return c.c.Key() }
func (c *anyCursor[K, V]) Value() any                  { return c.c.Value() }

type anyModel[K pando.Key, V any] struct{ m *Model[K, V] }

func (a *anyModel[K, V]) size() int              { return len(a.m.Keys) }
func (a *anyModel[K, V]) entry(i int) (any, any) { return a.m.Keys[i], a.m.Vals[i] }
func (a *anyModel[K, V]) rank(k any) int         { return a.m.Rank(k.(K)) }
func (a *anyModel[K, V]) after(k any) int        { return a.m.After(k.(K)) }
func (a *anyModel[K, V]) get(k any) (any, bool)  { return anyFound(a.m.Get(k.(K))) }
func (a *anyModel[K, V]) same(x, y any) bool     { return a.m.Same(x.(V), y.(V)) }

func (a *anyModel[K, V]) is(i int, k, v any) bool { return a.m.Is(i, k.(K), v.(V)) }

func (a *anyModel[K, V]) none() (any, any) {
	var k K
	var v V
	return k, v
}

func (a *anyModel[K, V]) bounds(k any) [4]pando.ScanOption { return boundsAt(k.(K)) }

func boundsAt[K pando.Key](k K) [4]pando.ScanOption {
	return [4]pando.ScanOption{pando.From(k), pando.After(k), pando.To(k), pando.Before(k)}
}

func anyFound[V any](v V, ok bool) (any, bool)              { return v, ok }
func anyPair[K, V any](k K, v V) (any, any)                 { return k, v }
func anyEntry[K, V any](k K, v V, ok bool) (any, any, bool) { return k, v, ok }
func anySeq[K, V any](s iter.Seq2[K, V]) iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		s(func(k K, v V) bool { return yield(k, v) })
	}
}

// anys returns a slice without its type. It is compiled once for each type, and not in each
// place that calls it, and so is typedAs.
//
//go:noinline
func anys[T any](s []T) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}

// typedAs returns a slice with its type again.
//
//go:noinline
func typedAs[T any](s []any) []T {
	out := make([]T, len(s))
	for i, x := range s {
		out[i] = x.(T)
	}
	return out
}

// span returns the entries with lo <= key <= hi, as Model.Span does.
func span(m model, lo, hi any, limit int) (first, end int) {
	return cut(m.rank(lo), m.after(hi), limit)
}

// cut returns a range of entries, the first limit of them where limit is above 0.
func cut(first, end, limit int) (int, int) {
	end = max(first, end)
	if limit > 0 {
		end = first + min(end-first, limit)
	}
	return first, end
}
