package pandoarrow

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando"
)

// rangeRows is the number of rows of a record batch: some hundred KiB, which stay in
// the cache until the next stage has read them.
const rangeRows = 64 << 10

// Range returns the entries with lo <= key <= hi in key order, as record batches of at
// most 65,536 rows:
//
//	for batch, err := range pandoarrow.Range(ix, 100, 200, nil, mem) {
//		if err != nil {
//			return err
//		}
//		err = w.Write(batch)
//		batch.Release()
//		…
//	}
//
// The columns are called key and value and have the Arrow types with the names of K and
// V, or are those of schema, where one is given: two columns, or one if V is struct{},
// of types as GetAs takes them. For a schema that does not match it yields ErrType and
// nothing more. The caller must release each batch. The reads are those of the index's
// own Range.
func Range[K pando.Key, V any](ix pando.Index[K, V], lo, hi K, schema *arrow.Schema, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		schema, err := entrySchema[K, V](schema)
		if err != nil {
			yield(nil, err)
			return
		}
		var keys []K
		var vals []V
		flush := func() bool {
			batch, err := entries(schema, nil, keys, vals, allocator(mem))
			keys, vals = keys[:0], vals[:0]
			return yield(batch, err) && err == nil
		}
		for k, v := range ix.Range(lo, hi) {
			keys, vals = append(keys, k), append(vals, v)
			if len(keys) == rangeRows && !flush() {
				return
			}
		}
		if len(keys) > 0 {
			flush()
		}
	}
}

// RangeBatch answers many ranges at once, as the index's own RangeBatch does: range i
// has the entries with lo[i] <= key <= hi[i], the first limit of them where limit is
// above 0. The record batch it returns has the columns of Range, with one before them,
// an Int64 that is called range and has the number i of each entry's range. A range with
// a null bound is empty. Bounds of different lengths result in pando.ErrLength, types
// that do not match in ErrType. The caller must release the batch.
func RangeBatch[K pando.Key, V any](ix pando.Index[K, V], lo, hi arrow.Array, limit int, schema *arrow.Schema, mem memory.Allocator) (arrow.RecordBatch, error) {
	lo, hi = plain(lo), plain(hi)
	if lo.Len() != hi.Len() {
		return nil, fmt.Errorf("%w: %d lower and %d upper bounds", pando.ErrLength, lo.Len(), hi.Len())
	}
	schema, err := entrySchema[K, V](schema)
	if err != nil {
		return nil, err
	}
	from, err := probeKeys[K](lo)
	if err != nil {
		return nil, err
	}
	to, err := probeKeys[K](hi)
	if err != nil {
		return nil, err
	}
	r := ix.RangeBatch(from, to, limit)
	rows := make([]int64, 0, len(r.Keys))
	keys, vals := r.Keys[:0], r.Vals[:0]
	for i := range r.Len() {
		if isNull(lo, i) || isNull(hi, i) {
			continue
		}
		k, v := r.At(i)
		keys, vals = append(keys, k...), append(vals, v...)
		for range k {
			rows = append(rows, int64(i))
		}
	}
	return entries(schema, rows, keys, vals, allocator(mem))
}

// entrySchema returns the columns of entries: those that are given, if they match, or
// else those of the types' names.
func entrySchema[K pando.Key, V any](given *arrow.Schema) (*arrow.Schema, error) {
	valued := reflect.TypeFor[V]().Size() > 0
	if given == nil {
		k, err := typeOf[K]()
		if err != nil {
			return nil, err
		}
		fields := []arrow.Field{{Name: "key", Type: k}}
		if valued {
			v, err := typeOf[V]()
			if err != nil {
				return nil, err
			}
			fields = append(fields, arrow.Field{Name: "value", Type: v})
		}
		return arrow.NewSchema(fields, nil), nil
	}
	want := 1
	if valued {
		want = 2
	}
	if given.NumFields() != want {
		return nil, fmt.Errorf("%w: entries have %d columns, and the schema has %d", ErrType, want, given.NumFields())
	}
	if err := matchStored[K](given.Field(0).Type); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if valued {
		if err := matchStored[V](given.Field(1).Type); err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
	}
	return given, nil
}

// entries returns entries as a record batch, with a column of numbers before them where
// there are some.
func entries[K pando.Key, V any](schema *arrow.Schema, rows []int64, keys []K, vals []V, mem memory.Allocator) (arrow.RecordBatch, error) {
	var columns []arrow.Array
	defer func() {
		for _, c := range columns {
			c.Release() // the batch retains them
		}
	}()
	fields := schema.Fields()
	if rows != nil {
		fields = slices.Insert(slices.Clone(fields), 0, arrow.Field{Name: "range", Type: arrow.PrimitiveTypes.Int64})
		c, err := arrayOf(rows, arrow.PrimitiveTypes.Int64, mem)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	c, err := arrayOf(keys, schema.Field(0).Type, mem)
	if err != nil {
		return nil, err
	}
	columns = append(columns, c)
	if schema.NumFields() > 1 {
		if c, err = arrayOf(vals, schema.Field(1).Type, mem); err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	meta := schema.Metadata()
	return array.NewRecordBatch(arrow.NewSchema(fields, &meta), columns, int64(len(keys))), nil
}

// arrayOf returns values as an array of a type that matches.
func arrayOf[T any](vals []T, t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	valid := make([]bool, len(vals))
	for i := range valid {
		valid[i] = true
	}
	if c, _ := classOf[T](); c == text || c == boolean || isDecimal(t) {
		return build(vals, valid, t, mem)
	}
	var v T
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	buf.Resize(len(vals) * int(unsafe.Sizeof(v)))
	copy(numbersIn[T](buf, len(vals)), vals)
	return wrap(t, buf, valid, 0, mem), nil
}
