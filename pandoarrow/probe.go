package pandoarrow

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando"
)

// Get looks up an array of keys. It returns an array of their values, null
// where the key is null or not found, and the number of keys found. The array
// has the Arrow type with V's name: Float64 for float64, String for string.
// The index writes numbers directly into the array's buffer, which is
// allocated from mem (nil: Arrow's default). The caller must release the
// array. A key type that does not match results in ErrType.
func Get[K pando.Key, V any](ix pando.Index[K, V], keys arrow.Array, mem memory.Allocator) (arrow.Array, int, error) {
	t, err := typeOf[V]()
	if err != nil {
		return nil, 0, err
	}
	return GetAs(ix, keys, t, mem)
}

// GetAs is Get with a result of another Arrow type that has values of type V:
// timestamps or decimals for int64, say, or large strings. A number of more digits than
// the decimals of the type have results in ErrType.
func GetAs[K pando.Key, V any](ix pando.Index[K, V], keys arrow.Array, t arrow.DataType, mem memory.Allocator) (arrow.Array, int, error) {
	if err := matchStored[V](t); err != nil {
		return nil, 0, fmt.Errorf("values: %w", err)
	}
	mem, keys = allocator(mem), plain(keys)
	n := keys.Len()
	found := make([]bool, n)
	if c, _ := classOf[V](); c == text || c == boolean || isDecimal(t) {
		vals := make([]V, n)
		hits, err := lookUp(ix, keys, vals, found)
		if err != nil {
			return nil, 0, err
		}
		out, err := build(vals, found, t, mem)
		return out, hits, err
	}
	var v V
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	buf.Resize(n * int(unsafe.Sizeof(v)))
	hits, err := lookUp(ix, keys, numbersIn[V](buf, n), found)
	if err != nil {
		return nil, 0, err
	}
	return wrap(t, buf, found, n-hits, mem), hits, nil
}

// lookUp sets vals and found for an array of keys, of which nulls are never
// found, and returns the number of keys found. Strings with offsets of 32 bits
// are looked up where they lie, without making Go strings of them.
func lookUp[K pando.Key, V any](ix pando.Index[K, V], keys arrow.Array, vals []V, found []bool) (hits int, err error) {
	inBytes, able := ix.(interface {
		GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int)
	})
	if data, offsets, ok := packed(keys); ok && able {
		if err := matchProbe[K](keys.DataType()); err != nil {
			return 0, err
		}
		hits = inBytes.GetBatchBytes(data, offsets, vals, found)
		return hits - dropNulls(keys, vals, found), nil
	}
	k, err := probeKeys[K](keys)
	if err != nil {
		return 0, err
	}
	hits = ix.GetBatch(k, vals, found)
	return hits - dropNulls(keys, vals, found), nil
}

// probeKeys returns keys that are looked up.
func probeKeys[K pando.Key](keys arrow.Array) ([]K, error) {
	if err := matchProbe[K](plainType(keys.DataType())); err != nil {
		return nil, err
	}
	k, err := view[K](keys)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return k, nil
}

// matchProbe is match for keys that are looked up. Decimals must say which scale the
// keys of the index have: else 1.00 would find the number 100.
func matchProbe[K pando.Key](t arrow.DataType) error { return matchProbeType(reflect.TypeFor[K](), t) }

func matchProbeType(of reflect.Type, t arrow.DataType) error {
	if c, _ := classOfType(of); isDecimal(t) && c == signed {
		return fmt.Errorf("%w: keys: an index does not know how many digits its numbers have behind the point; make numbers of %s with Digits first", ErrType, t)
	}
	if err := matchType(of, t); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

// packed returns the bytes and offsets of an array of strings, and reports
// whether it has such.
func packed(keys arrow.Array) (data []byte, offsets []int32, ok bool) {
	id := keys.DataType().ID()
	buffers := keys.Data().Buffers()
	if id != arrow.STRING && id != arrow.BINARY || keys.Len() == 0 || len(buffers) < 3 || buffers[1] == nil {
		return nil, nil, false
	}
	first := keys.Data().Offset()
	if buffers[2] != nil {
		data = buffers[2].Bytes()
	}
	return data, arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[first : first+keys.Len()+1], true
}

// Rank returns, for each key, the number of entries with a key below it, as an
// Int64 array, null where the key is null. The caller must release it.
func Rank[K pando.Key, V any](ix pando.Index[K, V], keys arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	mem, keys = allocator(mem), plain(keys)
	k, err := probeKeys[K](keys)
	if err != nil {
		return nil, err
	}
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	buf.Resize(len(k) * 8)
	ranks := numbersIn[int64](buf, len(k))
	if unsafe.Sizeof(0) == 8 {
		ix.RankBatch(k, recast[int](ranks))
	} else { // int has 32 bits
		short := make([]int, len(k))
		ix.RankBatch(k, short)
		for i, r := range short {
			ranks[i] = int64(r)
		}
	}
	valid := make([]bool, len(k))
	for i := range valid {
		valid[i] = true
	}
	nulls := dropNulls(keys, ranks, valid)
	return wrap(arrow.PrimitiveTypes.Int64, buf, valid, nulls, mem), nil
}

// AppendColumn returns a record batch with one more column at its end, named
// as: the values of the keys in column key, null where there is none. So it is
// a left join. It also returns the number of keys found. The caller must
// release the batch; the other columns are shared.
func AppendColumn[K pando.Key, V any](ix pando.Index[K, V], batch arrow.RecordBatch, key, as string, mem memory.Allocator) (arrow.RecordBatch, int, error) {
	at := batch.Schema().FieldIndices(key)
	if len(at) != 1 {
		return nil, 0, fmt.Errorf("%w: the batch has %d columns named %q, not one", ErrType, len(at), key)
	}
	values, hits, err := Get(ix, batch.Column(at[0]), mem)
	if err != nil {
		return nil, 0, err
	}
	defer values.Release()
	fields := append(batch.Schema().Fields(), arrow.Field{Name: as, Type: values.DataType(), Nullable: true})
	meta := batch.Schema().Metadata()
	columns := append([]arrow.Array(nil), batch.Columns()...)
	return array.NewRecordBatch(arrow.NewSchema(fields, &meta), append(columns, values), batch.NumRows()), hits, nil
}

// allocator returns mem, or Arrow's own allocator if mem is nil.
func allocator(mem memory.Allocator) memory.Allocator {
	if mem == nil {
		return memory.DefaultAllocator
	}
	return mem
}

// dropNulls clears the results of null keys, and returns the number of null
// keys that were found.
func dropNulls[V any](keys arrow.Array, vals []V, found []bool) (taken int) {
	if !hasNulls(keys) {
		return 0
	}
	var zero V
	for i := range found {
		if found[i] && isNull(keys, i) {
			vals[i], found[i] = zero, false
			taken++
		}
	}
	return taken
}

// numbersIn returns a buffer as a slice of n numbers.
func numbersIn[T any](buf *memory.Buffer, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))), n)
}

// wrap returns an array over a buffer of numbers, null where valid is not set.
func wrap(t arrow.DataType, buf *memory.Buffer, valid []bool, nulls int, mem memory.Allocator) arrow.Array {
	var bits *memory.Buffer
	if nulls > 0 {
		bits = bitmap(valid, mem)
		defer bits.Release()
	}
	data := array.NewData(t, len(valid), []*memory.Buffer{bits, buf}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// bitmap returns one bit per mark, in Arrow's format.
func bitmap(marks []bool, mem memory.Allocator) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize((len(marks) + 7) / 8)
	bits := buf.Bytes()
	clear(bits)
	for i, m := range marks {
		if m {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return buf
}

// build makes an array of strings, booleans or decimals.
func build[V any](vals []V, found []bool, t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	switch c, width := classOf[V](); {
	case isDecimal(t) && width == 4:
		return buildDecimals(func(i int) int64 { return int64(recast[int32](vals)[i]) }, found, t, mem)
	case isDecimal(t):
		return buildDecimals(func(i int) int64 { return recast[int64](vals)[i] }, found, t, mem)
	case c == text:
		return buildText(recast[string](vals), nil, found, t, mem)
	default:
		return buildText(nil, recast[bool](vals), found, t, mem)
	}
}

// buildText makes an array of strings, or of booleans.
func buildText(strings []string, bools []bool, found []bool, t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	b.Reserve(len(found))
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.AppendValues(bools, found)
	case *array.StringBuilder:
		return appendText(b, b.Append, strings, found, math.MaxInt32)
	case *array.LargeStringBuilder:
		return appendText(b, b.Append, strings, found, math.MaxInt64)
	case *array.StringViewBuilder:
		return appendText(b, b.Append, strings, found, math.MaxInt64)
	case *array.BinaryBuilder:
		most := int64(math.MaxInt32)
		if t.ID() == arrow.LARGE_BINARY {
			most = math.MaxInt64
		}
		return appendText(b, b.AppendString, strings, found, most)
	case *array.BinaryViewBuilder:
		return appendText(b, b.AppendString, strings, found, math.MaxInt64)
	default:
		return nil, fmt.Errorf("%w: values cannot be given as %s; take String or LargeString", ErrType, t)
	}
	return b.NewArray(), nil
}

// appendText appends strings with add, at most most bytes in all.
func appendText(b array.Builder, add func(string), vals []string, found []bool, most int64) (arrow.Array, error) {
	total := int64(0)
	for i, s := range vals {
		if !found[i] {
			b.AppendNull()
			continue
		}
		if total += int64(len(s)); total > most {
			return nil, fmt.Errorf("%w: the values have more than %d bytes; take GetAs with LargeString, or fewer keys", ErrType, most)
		}
		add(s)
	}
	return b.NewArray(), nil
}

// typeOf returns the Arrow type with V's name.
func typeOf[V any]() (arrow.DataType, error) { return arrowTypeOf(reflect.TypeFor[V]()) }

func arrowTypeOf(of reflect.Type) (arrow.DataType, error) {
	c, width := classOfType(of)
	for _, t := range []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean,
	} {
		if ac, aw := arrowClass(t); c != other && ac == c && aw == width {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no Arrow type for values of Go type %s", ErrType, of)
}
