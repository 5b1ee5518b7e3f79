package table

import (
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// groupRows is the number of rows per row group, the usual one.
const groupRows = 1 << 20

// parquetSink writes a Parquet file with Snappy compression. It holds a row
// group in memory, already compressed.
type parquetSink struct {
	w     *file.Writer
	group file.BufferedRowGroupWriter
	rows  int

	levels []int16
	bytes  []parquet.ByteArray
	room   Column // scratch for values that are not null
}

func newParquetSink(w io.Writer, fields []Field) (s Sink, err error) {
	defer guard(&err, "the schema")
	var nodes schema.FieldList
	opts := []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Snappy)}
	for _, f := range fields {
		node, err := parquetNode(f)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
		if f.Type != String { // a dictionary of numbers seldom pays
			opts = append(opts, parquet.WithDictionaryFor(f.Name, false))
		}
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, err
	}
	out := struct{ io.Writer }{w} // so that it is not closed
	return &parquetSink{w: file.NewParquetWriter(out, root, file.WithWriterProps(parquet.NewWriterProperties(opts...)))}, nil
}

// parquetNode returns the description of a column.
func parquetNode(f Field) (schema.Node, error) {
	optional := parquet.Repetitions.Optional
	switch f.Type {
	case Int64:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(64, true), parquet.Types.Int64, 0, -1)
	case Uint64:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(64, false), parquet.Types.Int64, 0, -1)
	case Int32:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(32, true), parquet.Types.Int32, 0, -1)
	case Uint32:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(32, false), parquet.Types.Int32, 0, -1)
	case Float64:
		return schema.NewPrimitiveNode(f.Name, optional, parquet.Types.Double, -1, -1)
	case Float32:
		return schema.NewPrimitiveNode(f.Name, optional, parquet.Types.Float, -1, -1)
	}
	return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)
}

// Write implements Sink.Write.
func (s *parquetSink) Write(b *Batch) (err error) {
	defer guard(&err, "the output")
	if s.group == nil {
		if s.group, err = s.w.AppendBufferedRowGroupChecked(); err != nil {
			return err
		}
		s.rows = 0
	}
	for i := range b.Columns {
		w, err := s.group.Column(i)
		if err != nil {
			return err
		}
		if err := s.column(w, &b.Columns[i]); err != nil {
			return err
		}
	}
	if s.rows += b.Rows; s.rows >= groupRows {
		return s.endGroup()
	}
	return nil
}

// column writes the values of one column: those that are not null, and for
// each row a level that tells whether it is null.
func (s *parquetSink) column(w file.ColumnChunkWriter, c *Column) (err error) {
	s.levels = s.levels[:0]
	for i := range c.Len() {
		level := int16(1)
		if c.IsNull(i) {
			level = 0
		}
		s.levels = append(s.levels, level)
	}
	r := &s.room
	switch w := w.(type) {
	case *file.Int64ColumnChunkWriter:
		values := c.Int64
		if c.Type == Uint64 {
			values = asSigned[int64](c.Uint64)
		}
		r.Int64, err = writeColumn(w, values, c.Null, s.levels, r.Int64)
	case *file.Int32ColumnChunkWriter:
		values := c.Int32
		if c.Type == Uint32 {
			values = asSigned[int32](c.Uint32)
		}
		r.Int32, err = writeColumn(w, values, c.Null, s.levels, r.Int32)
	case *file.Float64ColumnChunkWriter:
		r.Float64, err = writeColumn(w, c.Float64, c.Null, s.levels, r.Float64)
	case *file.Float32ColumnChunkWriter:
		r.Float32, err = writeColumn(w, c.Float32, c.Null, s.levels, r.Float32)
	case *file.ByteArrayColumnChunkWriter:
		s.bytes = s.bytes[:0]
		for i, v := range c.String {
			if !c.IsNull(i) {
				s.bytes = append(s.bytes, parquet.ByteArray(v))
			}
		}
		_, err = writeColumn(w, s.bytes, nil, s.levels, nil)
	}
	return err
}

// columnWriter is the method set that the column writers of all types share.
type columnWriter[T any] interface {
	WriteBatch(values []T, def, rep []int16) (int64, error)
}

// writeColumn writes the values that are not null, gathered in room if there
// are nulls, and returns room.
func writeColumn[T any](w columnWriter[T], values []T, null []bool, levels []int16, room []T) ([]T, error) {
	if null != nil {
		room = room[:0]
		for i, v := range values {
			if !null[i] {
				room = append(room, v)
			}
		}
		values = room
	}
	_, err := w.WriteBatch(values, levels, nil)
	return room, err
}

func (s *parquetSink) endGroup() error {
	g := s.group
	s.group = nil
	return g.Close()
}

// Close implements Sink.Close.
func (s *parquetSink) Close() (err error) {
	defer guard(&err, "the output")
	if s.group != nil {
		if err := s.endGroup(); err != nil {
			return err
		}
	}
	return s.w.Close()
}
