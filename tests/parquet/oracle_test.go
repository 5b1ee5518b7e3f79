package parquet_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/pando-index/pando/internal/table"
)

// oracle writes and reads Parquet files with Arrow's library.
type oracle struct {
	levels []int16
	bytes  []parquet.ByteArray
	room   table.Column // values that are not null
}

// oracleNode describes a column.
func oracleNode(f table.Field) (schema.Node, error) {
	optional := parquet.Repetitions.Optional
	switch f.Type {
	case table.Int64:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(64, true), parquet.Types.Int64, 0, -1)
	case table.Uint64:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(64, false), parquet.Types.Int64, 0, -1)
	case table.Int32:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(32, true), parquet.Types.Int32, 0, -1)
	case table.Uint32:
		return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.NewIntLogicalType(32, false), parquet.Types.Int32, 0, -1)
	case table.Float64:
		return schema.NewPrimitiveNode(f.Name, optional, parquet.Types.Double, -1, -1)
	case table.Float32:
		return schema.NewPrimitiveNode(f.Name, optional, parquet.Types.Float, -1, -1)
	}
	return schema.NewPrimitiveNodeLogical(f.Name, optional, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)
}

// oracleFile writes each batch as a row group.
func oracleFile(t testing.TB, fields []table.Field, batches []*table.Batch, opts ...parquet.WriterProperty) string {
	t.Helper()
	var nodes schema.FieldList
	for _, f := range fields {
		n, err := oracleNode(f)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	var s oracle
	return parquetGroups(t, nodes, len(batches), func(group, i int, w file.ColumnChunkWriter) {
		if err := s.column(w, &batches[group].Columns[i]); err != nil {
			t.Fatal(err)
		}
	}, opts...)
}

// column writes the values of one column: those that are not null, and a level for each
// row that says whether it is.
func (s *oracle) column(w file.ColumnChunkWriter, c *table.Column) (err error) {
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
		if c.Type == table.Uint64 {
			values = asSigned[int64](c.Uint64)
		}
		r.Int64, err = writeColumn(w, values, c.Null, s.levels, r.Int64)
	case *file.Int32ColumnChunkWriter:
		values := c.Int32
		if c.Type == table.Uint32 {
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

// columnWriter is what the column writers of all types have.
type columnWriter[T any] interface {
	WriteBatch(values []T, def, rep []int16) (int64, error)
}

// writeColumn writes the values that are not null, gathered in room if some
// are, and gives room back.
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

// asSigned returns unsigned numbers as the signed ones that Parquet stores.
func asSigned[S int32 | int64, U uint32 | uint64](u []U) []S {
	return unsafe.Slice((*S)(unsafe.Pointer(unsafe.SliceData(u))), len(u))
}

// oracleRead reads all rows of a file.
func oracleRead(t testing.TB, data []byte, fields []table.Field) *table.Batch {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.MetaData().Schema.NumColumns(); n != len(fields) {
		t.Fatalf("%d columns, want %d", n, len(fields))
	}
	all := new(table.Batch)
	all.Reset(fields)
	all.Rows = int(r.NumRows())
	for g := range r.NumRowGroups() {
		rows := int(r.RowGroup(g).NumRows())
		for i := range fields {
			if name := r.MetaData().Schema.Column(i).Path(); name != fields[i].Name {
				t.Fatalf("column %q, want %q", name, fields[i].Name)
			}
			c, err := r.RowGroup(g).Column(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := oracleColumn(c, &all.Columns[i], rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// oracleColumn adds the rows of a column in a row group.
func oracleColumn(r file.ColumnChunkReader, to *table.Column, rows int) (err error) {
	switch r := r.(type) {
	case *file.Int64ColumnChunkReader:
		err = readOracle(r, to, rows, func(v int64) {
			to.Int64, to.Uint64 = append(to.Int64, v), append(to.Uint64, uint64(v))
		})
	case *file.Int32ColumnChunkReader:
		err = readOracle(r, to, rows, func(v int32) {
			to.Int32, to.Uint32 = append(to.Int32, v), append(to.Uint32, uint32(v))
		})
	case *file.Float64ColumnChunkReader:
		err = readOracle(r, to, rows, func(v float64) { to.Float64 = append(to.Float64, v) })
	case *file.Float32ColumnChunkReader:
		err = readOracle(r, to, rows, func(v float32) { to.Float32 = append(to.Float32, v) })
	case *file.ByteArrayColumnChunkReader:
		err = readOracle(r, to, rows, func(v parquet.ByteArray) { to.String = append(to.String, string(v)) })
	}
	if to.Type == table.Uint64 {
		to.Int64 = nil
	} else {
		to.Uint64 = nil
	}
	if to.Type == table.Uint32 {
		to.Int32 = nil
	} else {
		to.Uint32 = nil
	}
	return err
}

// readOracle returns the values one by one, the zero value for a null.
func readOracle[T any](r interface {
	ReadBatch(n int64, values []T, def, rep []int16) (int64, int, error)
}, to *table.Column, rows int, add func(T)) error {
	var value [1]T
	var level [1]int16
	for range rows {
		_, n, err := r.ReadBatch(1, value[:], level[:], nil)
		if err != nil {
			return err
		}
		if n == 0 {
			to.PadNull(to.Len())
			to.Null = append(to.Null, true)
			value[0] = *new(T)
		}
		add(value[0])
	}
	to.Seal()
	return nil
}
