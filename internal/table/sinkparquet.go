package table

import (
	"io"
	"reflect"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

const (
	groupRows = 1 << 20 // rows of a row group, the usual number
	pageBytes = 1 << 20 // of values in a page, the usual size
)

// parquetSink writes a Parquet file with Snappy compression. It holds a row
// group in memory, already compressed.
type parquetSink struct {
	w    *parquet.GenericWriter[any]
	rows int
	room [512]parquet.Value
}

func newParquetSink(w io.Writer, fields []Field) (s Sink, err error) {
	defer guard(&err, "the schema")
	root := parquetRoot{Group: parquet.Group{}}
	for _, f := range fields {
		root.fields = append(root.fields, parquetField{parquetNode(f.Type), f.Name})
	}
	return &parquetSink{w: parquet.NewGenericWriter[any](w, parquet.NewSchema("schema", root),
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
	for i, w := range s.w.ColumnWriters() {
		if err := s.column(w, &b.Columns[i]); err != nil {
			return err
		}
	}
	if s.rows += b.Rows; s.rows >= groupRows {
		s.rows = 0
		return s.w.Flush()
	}
	return nil
}

// column writes the values of a column.
func (s *parquetSink) column(w *parquet.ColumnWriter, c *Column) error {
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
	return writeValues(s, w, c, c.String, func(s string) parquet.Value { // the writer copies it
		return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(s), len(s)))
	})
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
	return s.w.Close()
}
