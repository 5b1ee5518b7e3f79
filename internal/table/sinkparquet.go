package table

import (
	"cmp"
	"io"
	"reflect"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"

	"github.com/pando-index/pando/internal/table/cols"
)

const (
	groupRows = 1 << 20 // rows of a row group, the usual number
	pageBytes = 1 << 20 // of values in a page, the usual size
)

// parquetSink writes a Parquet file with Snappy compression. It holds a row
// group in memory, already compressed.
type parquetSink struct {
	w      *parquet.GenericWriter[any]
	tail   *parquetTail
	binary map[int]bool // leaves whose strings are not all UTF-8
	rows   int
	room   [512]parquet.Value
}

func newParquetSink(w io.Writer, fields []Field) (s Sink, err error) {
	defer guard(&err, "the schema")
	root := parquetRoot{Group: parquet.Group{}}
	for _, f := range fields {
		root.fields = append(root.fields, parquetField{parquetNodeOf(f), f.Name})
	}
	tail := &parquetTail{w: w}
	return &parquetSink{tail: tail, binary: map[int]bool{}, w: parquet.NewGenericWriter[any](tail, parquet.NewSchema("schema", root),
		parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1), parquet.PageBufferSize(pageBytes),
		parquet.DictionaryMaxBytes(pageBytes))}, nil
}

// parquetRoot is a group whose fields stay in the order they have in a table.
type parquetRoot struct {
	parquet.Group
	fields []parquet.Field
}

// Fields is parquet.Node.Fields.
func (r parquetRoot) Fields() []parquet.Field { return r.fields }

// parquetField is a column of a parquetRoot.
type parquetField struct {
	parquet.Node
	name string
}

// Name is parquet.Field.Name.
func (f parquetField) Name() string { return f.name }

// Value is parquet.Field.Value. It is for rows that are Go values, and there are none.
func (f parquetField) Value(reflect.Value) reflect.Value { panic("not called") }

// parquetNode describes a column. A dictionary of numbers seldom pays.
func parquetNode(t Type) parquet.Node {
	switch t {
	case Int64:
		return parquet.Optional(parquet.Int(64))
	case Uint64:
		return parquet.Optional(parquet.Uint(64))
	case Int32:
		return parquet.Optional(parquet.Int(32))
	case Uint32:
		return parquet.Optional(parquet.Uint(32))
	case Float64:
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	case Float32:
		return parquet.Optional(parquet.Leaf(parquet.FloatType))
	}
	return parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))
}

// Write implements Sink.Write.
func (s *parquetSink) Write(b *Batch) (err error) {
	defer guard(&err, "the output")
	leaves, leaf := s.w.ColumnWriters(), 0
	for i := range b.Columns {
		c, n := &b.Columns[i], 1
		if f, ok := c.Foreign.(*parquetForeign); ok {
			n, err = len(f.leaves), f.write(leaves[leaf:])
		} else {
			err = s.column(leaves[leaf], c)
			s.binary[leaf] = s.binary[leaf] || hasBytes(c)
		}
		if err != nil {
			return err
		}
		leaf += n
	}
	if s.rows += b.Rows; s.rows >= groupRows {
		return s.EndGroup()
	}
	return nil
}

// EndGroup writes the rows of the group that is in memory, for whoever knows that they are long.
func (s *parquetSink) EndGroup() (err error) {
	defer guard(&err, "the output")
	s.rows = 0
	return s.w.Flush()
}

// column writes the values of a column.
func (s *parquetSink) column(w *parquet.ColumnWriter, c *Column) error {
	if c.Foreign != nil || c.Form == Token || c.Kind.Of == cols.Boolean || c.Kind.Of == cols.Time || c.Kind.Unit == time.Second {
		return s.foreign(w, c)
	}
	switch c.Type {
	case Int64:
		return writeValues(s, w, c, c.Int64, parquet.Int64Value)
	case Uint64:
		return writeValues(s, w, c, c.Uint64, func(v uint64) parquet.Value { return parquet.Int64Value(int64(v)) })
	case Int32:
		return writeValues(s, w, c, c.Int32, parquet.Int32Value)
	case Uint32:
		return writeValues(s, w, c, c.Uint32, func(v uint32) parquet.Value { return parquet.Int32Value(int32(v)) })
	case Float64:
		return writeValues(s, w, c, c.Float64, parquet.DoubleValue)
	case Float32:
		return writeValues(s, w, c, c.Float32, parquet.FloatValue)
	}
	asValue := parquet.ByteArrayValue
	if c.Kind.Of == cols.UUID {
		asValue = parquet.FixedLenByteArrayValue
	}
	return writeValues(s, w, c, c.String, func(s string) parquet.Value { // the writer copies it
		return asValue(unsafe.Slice(unsafe.StringData(s), len(s)))
	})
}

// foreign writes values of another format: those of a kind as numbers, the others
// as text.
func (s *parquetSink) foreign(w *parquet.ColumnWriter, c *Column) error {
	kind := c.Kind
	if c.Foreign != nil {
		kind = c.Foreign.Kind()
	}
	if f, ok := c.Foreign.(arrowForeign); ok && (kind.Of == cols.Decimal || kind.Of == cols.Wide) {
		if err := f.fitDigits(c.Name); err != nil {
			return err
		}
	}
	rows := make([]int, c.Len())
	for i := range rows {
		rows[i] = i
	}
	return writeValues(s, w, c, rows, func(i int) parquet.Value {
		if c.IsNull(i) {
			return parquet.Value{}
		}
		return parquetValue(c, kind, i)
	})
}

// parquetValue returns a value of a kind in the type that parquetNodeOf chooses.
func parquetValue(c *Column, kind cols.Kind, i int) parquet.Value {
	switch kind.Of {
	case cols.Boolean:
		return parquet.BooleanValue(kindInt(c, i) != 0)
	case cols.Date:
		return parquet.Int32Value(int32(kindInt(c, i)))
	case cols.Time, cols.Timestamp:
		v := kindInt(c, i)
		if kind.Unit == time.Second { // Parquet has none
			v *= 1000
		}
		if kind.Of == cols.Time && kind.Unit >= time.Millisecond {
			return parquet.Int32Value(int32(v))
		}
		return parquet.Int64Value(v)
	case cols.Decimal:
		if kind.Bits == 32 {
			return parquet.Int32Value(int32(kindInt(c, i)))
		}
		return parquet.Int64Value(kindInt(c, i))
	case cols.Integer:
		if kind.Bits == 64 || kind.Bits == -64 {
			return parquet.Int64Value(kindInt(c, i))
		}
		return parquet.Int32Value(int32(kindInt(c, i)))
	case cols.UUID, cols.Wide:
		return parquet.FixedLenByteArrayValue(c.Foreign.AppendBytes(nil, i))
	case cols.Binary:
		return parquet.ByteArrayValue(c.Foreign.AppendBytes(nil, i))
	}
	return parquet.ByteArrayValue([]byte(textOf(c, i)))
}

// parquetNodeOf describes a column: as it was in a Parquet file, by its kind, or by
// its type.
func parquetNodeOf(f Field) parquet.Node {
	precision := 0 // of a decimal that is passed on
	switch native := f.Native.(type) {
	case *parquet.Column:
		return parquetCopy{native}
	case arrow.DataType:
		f.Type, f.Kind = Int64, arrowPassedKind(native, f.Kind.Of == cols.UUID)
		if f.Kind.Of == cols.Other {
			f.Type = String
		}
		if d, ok := plainArrow(native).(arrow.DecimalType); ok {
			precision = int(d.GetPrecision())
		}
	}
	switch k := f.Kind; k.Of {
	case cols.UUID:
		return parquet.Optional(parquet.UUID())
	case cols.Binary:
		return parquet.Optional(parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.RLEDictionary))
	case cols.Wide:
		return parquet.Optional(parquet.Decimal(k.Scale, cmp.Or(precision, widest), parquet.FixedLenByteArrayType(16)))
	case cols.Integer:
		if k.Bits < 0 {
			return parquet.Optional(parquet.Uint(-k.Bits))
		}
		return parquet.Optional(parquet.Int(k.Bits))
	case cols.Boolean:
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	case cols.Date:
		return parquet.Optional(parquet.Date())
	case cols.Decimal:
		if f.Type == Int32 || k.Bits == 32 {
			return parquet.Optional(parquet.Decimal(k.Scale, cmp.Or(precision, mostShort), parquet.Int32Type))
		}
		return parquet.Optional(parquet.Decimal(k.Scale, cmp.Or(precision, mostScale), parquet.Int64Type))
	case cols.Time:
		return parquet.Optional(parquet.TimeAdjusted(parquetTimeUnit(k), false))
	case cols.Timestamp:
		return parquet.Optional(parquet.TimestampAdjusted(parquetTimeUnit(k), k.UTC))
	}
	return parquetNode(f.Type)
}

// parquetTimeUnit returns the unit of a kind; Parquet has no seconds.
func parquetTimeUnit(k cols.Kind) parquet.TimeUnit {
	switch k.Unit {
	case time.Second, time.Millisecond:
		return parquet.Millisecond
	case time.Microsecond:
		return parquet.Microsecond
	}
	return parquet.Nanosecond
}

// write writes values as they are into the columns of their leaves.
func (f *parquetForeign) write(leaves []*parquet.ColumnWriter) error {
	for i, l := range f.leaves {
		const some = 512 // rows, so that pages are cut where they should be
		for row := 0; row < f.Len(); row += some {
			values := l.values[l.start[row]:l.start[min(row+some, f.Len())]]
			if _, err := leaves[i].WriteRowValues(values); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeValues writes values a few at a time, so that they stay in the cache:
// the library's form of a value is three times as large.
func writeValues[T any](s *parquetSink, w *parquet.ColumnWriter, c *Column, values []T, value func(T) parquet.Value) error {
	for row := 0; row < len(values); row += len(s.room) {
		some := values[row:min(row+len(s.room), len(values))]
		for j, v := range some {
			if c.IsNull(row + j) {
				s.room[j] = parquet.Value{}
			} else {
				s.room[j] = value(v)
				s.room[j].SetDefinitionLevel(1)
			}
		}
		if _, err := w.WriteRowValues(s.room[:len(some)]); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Sink.Close.
func (s *parquetSink) Close() (err error) {
	defer guard(&err, "the output")
	if err := s.w.Flush(); err != nil {
		return err
	}
	s.tail.hold = true
	if err := s.w.Close(); err != nil {
		return err
	}
	return s.tail.finish(s.binary)
}
