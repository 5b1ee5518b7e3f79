package table

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/table/cols"
)

// arrowTypes are the Arrow types of columns.
var arrowTypes = [...]arrow.DataType{
	Int64: arrow.PrimitiveTypes.Int64, Uint64: arrow.PrimitiveTypes.Uint64,
	Int32: arrow.PrimitiveTypes.Int32, Uint32: arrow.PrimitiveTypes.Uint32,
	Float64: arrow.PrimitiveTypes.Float64, Float32: arrow.PrimitiveTypes.Float32,
	String: arrow.BinaryTypes.String,
}

// arrowTypeOf returns the Arrow type of a column: that which it had in an Arrow
// file, or that of its kind.
func arrowTypeOf(f Field) arrow.DataType {
	switch native := f.Native.(type) {
	case arrow.DataType:
		return native
	case *parquet.Column:
		f.Kind = (&parquetForeign{column: native}).Kind()
		if d := parquetDecimal(native.Type()); d != nil && (f.Kind.Of == cols.Decimal || f.Kind.Of == cols.Wide) {
			return &arrow.Decimal128Type{Precision: d.Precision, Scale: d.Scale}
		}
	}
	switch k := f.Kind; k.Of {
	case cols.UUID:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case cols.Binary:
		return arrow.BinaryTypes.Binary
	case cols.Wide:
		return &arrow.Decimal128Type{Precision: widest, Scale: int32(k.Scale)}
	case cols.Integer:
		return arrowIntegers[k.Bits]
	case cols.Time:
		return arrowTime(k.Unit)
	case cols.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case cols.Date:
		return arrow.FixedWidthTypes.Date32
	case cols.Decimal: // 64 bits may have a digit more than Parquet has for them
		return &arrow.Decimal128Type{Precision: 19, Scale: int32(k.Scale)}
	case cols.Timestamp:
		t := &arrow.TimestampType{Unit: arrowUnit(k.Unit)}
		if k.UTC {
			t.TimeZone = "UTC"
		}
		return t
	}
	return arrowTypes[f.Type]
}

// arrowIntegers are the types of integers by their bits, those without a sign below 0.
var arrowIntegers = map[int]arrow.DataType{
	8: arrow.PrimitiveTypes.Int8, 16: arrow.PrimitiveTypes.Int16, 32: arrow.PrimitiveTypes.Int32, 64: arrow.PrimitiveTypes.Int64,
	-8: arrow.PrimitiveTypes.Uint8, -16: arrow.PrimitiveTypes.Uint16, -32: arrow.PrimitiveTypes.Uint32, -64: arrow.PrimitiveTypes.Uint64,
}

// arrowUnit returns the unit that lasts so long.
func arrowUnit(d time.Duration) arrow.TimeUnit {
	for u := arrow.Second; u < arrow.Nanosecond; u++ {
		if u.Multiplier() == d {
			return u
		}
	}
	return arrow.Nanosecond
}

// arrowTime returns the type of times of day in a unit.
func arrowTime(unit time.Duration) arrow.DataType {
	if unit >= time.Millisecond {
		return &arrow.Time32Type{Unit: arrowUnit(unit)}
	}
	return &arrow.Time64Type{Unit: arrowUnit(unit)}
}

// kindBytes adds the bytes of a value of the kind UUID or Binary.
func kindBytes(c *Column, buf []byte, i int) []byte {
	if c.Foreign != nil {
		return c.Foreign.AppendBytes(buf, i)
	}
	return append(buf, c.String[i]...)
}

// kindInt returns a value of a column that has a kind as a number.
func kindInt(c *Column, i int) int64 {
	switch {
	case c.Foreign != nil:
		return c.Foreign.Int(i)
	case c.Type == String && c.String[i] == "true":
		return 1
	case c.Type == String:
		return 0
	}
	return kindNumber(c, i)
}

// kindArray returns values of another format as an array of the type that
// arrowTypeOf has chosen for their kind.
func kindArray(c *Column, t arrow.DataType) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	for i := range c.Len() {
		if c.IsNull(i) {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.Decimal128Builder:
			b.Append(decimalOf(c, i))
		case *array.FixedSizeBinaryBuilder:
			b.Append(kindBytes(c, nil, i))
		case *array.BinaryBuilder:
			b.Append(kindBytes(c, nil, i))
		default:
			appendArrowInt(b, kindInt(c, i))
		}
	}
	return b.NewArray()
}

// decimalOf returns a value of the kind Decimal or Wide.
func decimalOf(c *Column, i int) decimal128.Num {
	if c.Foreign == nil || c.Foreign.Kind().Of == cols.Decimal {
		return decimal128.FromI64(kindInt(c, i))
	}
	b := c.Foreign.AppendBytes(nil, i)
	return decimal128.New(int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:]))
}

// appendArrowInt adds the value that a number stands for.
func appendArrowInt(b array.Builder, v int64) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v != 0)
	case *array.Date32Builder:
		b.Append(arrow.Date32(v))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v))
	case *array.Int8Builder:
		b.Append(int8(v))
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Uint8Builder:
		b.Append(uint8(v))
	case *array.Uint16Builder:
		b.Append(uint16(v))
	case *array.Uint32Builder:
		b.Append(uint32(v))
	case *array.Uint64Builder:
		b.Append(uint64(v))
	}
}

// arrowSink writes an Arrow IPC stream, with one record batch per batch.
type arrowSink struct {
	w      *ipc.Writer
	schema *arrow.Schema
	bytes  bool // some strings are not UTF-8
}

// Warnings returns warnings for readers of the output.
func (s *arrowSink) Warnings() []string {
	if !s.bytes {
		return nil
	}
	return []string{"some strings are not UTF-8, as Arrow says they are; programs that check will refuse them"}
}

func newArrowSink(w io.Writer, schema []Field) Sink {
	var fields []arrow.Field
	for _, f := range schema {
		field := arrow.Field{Name: f.Name, Type: arrowTypeOf(f), Nullable: true}
		if isUUID(f) {
			field.Metadata = arrow.NewMetadata([]string{arrowExtension, arrowMetadata}, []string{arrowUUID, ""})
		}
		fields = append(fields, field)
	}
	s := arrow.NewSchema(fields, nil)
	return &arrowSink{w: ipc.NewWriter(w, ipc.WithSchema(s)), schema: s}
}

// Write implements Sink.Write. Numbers are written from the batch's own
// memory.
func (s *arrowSink) Write(b *Batch) (err error) {
	defer guard(&err, "the input") // values that are passed on are read only here
	columns := make([]arrow.Array, len(b.Columns))
	for i := range b.Columns {
		s.bytes = s.bytes || s.schema.Field(i).Type.ID() == arrow.STRING && hasBytes(&b.Columns[i])
		columns[i] = arrowArray(&b.Columns[i], s.schema.Field(i).Type)
	}
	record := array.NewRecordBatch(s.schema, columns, int64(b.Rows))
	defer record.Release()
	for _, c := range columns {
		c.Release() // the record retains them
	}
	return s.w.Write(record)
}

// Close implements Sink.Close.
func (s *arrowSink) Close() error { return s.w.Close() }

// arrowArray returns the column as an Arrow array over the same memory, or over a
// copy for strings.
func arrowArray(c *Column, t arrow.DataType) arrow.Array {
	if f, ok := c.Foreign.(arrowForeign); ok {
		f.a.Retain()
		return f.a
	}
	if t != arrowTypes[c.Type] || c.Foreign != nil && t.ID() != arrow.STRING {
		return kindArray(c, t)
	}
	if c.Type == String {
		return stringArray(c)
	}
	valid, nulls := validity(c)
	data := array.NewData(arrowTypes[c.Type], c.Len(), []*memory.Buffer{valid, memory.NewBufferBytes(numberBytes(c))}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func stringArray(c *Column) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(c.Len())
	for i := range c.Len() {
		if c.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(textOf(c, i))
		}
	}
	return b.NewArray()
}

// validity returns Arrow's bitmap of values that are not null (nil if none is),
// and the number of nulls.
func validity(c *Column) (*memory.Buffer, int) {
	if c.Null == nil {
		return nil, 0
	}
	bits := make([]byte, (len(c.Null)+7)/8)
	nulls := 0
	for i, null := range c.Null {
		if null {
			nulls++
		} else {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return memory.NewBufferBytes(bits), nulls
}

// numberBytes gives the memory of numbers.
func numberBytes(c *Column) []byte {
	switch c.Type {
	case Int64:
		return arena.Bytes(c.Int64)
	case Uint64:
		return arena.Bytes(c.Uint64)
	case Int32:
		return arena.Bytes(c.Int32)
	case Uint32:
		return arena.Bytes(c.Uint32)
	case Float64:
		return arena.Bytes(c.Float64)
	}
	return arena.Bytes(c.Float32)
}
