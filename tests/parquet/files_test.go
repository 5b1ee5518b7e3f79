package parquet_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/pando-index/pando/internal/table"
)

var rewrite = flag.Bool("write", false, "write the files that package table keeps")

// TestFiles tests that the files of Arrow's library that the tests of package table read
// are still what it writes: go test -run TestFiles -write writes them anew.
func TestFiles(t *testing.T) {
	for name, data := range map[string]string{
		"arrow-types.parquet":   typesFile(t),
		"arrow-refused.parquet": refusedFile(t),
		"arrow-old.parquet":     oldFile(t),
		"arrow-v1.parquet":      encodedFile(t, 0, parquet.WithDataPageVersion(parquet.DataPageV1)),
		"arrow-v2.parquet":      encodedFile(t, 3, parquet.WithDataPageVersion(parquet.DataPageV2)),
	} {
		path := filepath.Join("../../internal/table/testdata", name)
		if *rewrite {
			if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(kept) != data {
			t.Errorf("%s is not what Arrow's library writes", path)
		}
	}
}

// parquetFile writes one row group with the given nodes; fill writes column i.
func parquetFile(t testing.TB, nodes schema.FieldList, fill func(i int, w file.ColumnChunkWriter), opts ...parquet.WriterProperty) string {
	t.Helper()
	return parquetGroups(t, nodes, 1, func(_, i int, w file.ColumnChunkWriter) { fill(i, w) }, opts...)
}

// parquetGroups writes row groups with the given nodes; fill writes column i.
func parquetGroups(t testing.TB, nodes schema.FieldList, groups int, fill func(group, i int, w file.ColumnChunkWriter), opts ...parquet.WriterProperty) string {
	t.Helper()
	var out bytes.Buffer
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1))
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(parquet.NewWriterProperties(opts...)))
	for group := range groups {
		g, err := w.AppendBufferedRowGroupChecked()
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.NumColumns() {
			c, err := g.Column(i)
			if err != nil {
				t.Fatal(err)
			}
			fill(group, i, c)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// otherNodes are types beyond the seven.
func otherNodes() schema.FieldList {
	opt, req := parquet.Repetitions.Optional, parquet.Repetitions.Required
	leaf := schema.MustPrimitive(schema.NewPrimitiveNode("lat", opt, parquet.Types.Double, -1, -1))
	return schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNode("bool", opt, parquet.Types.Boolean, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNode("fixed", opt, parquet.Types.FixedLenByteArray, -1, 2)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("u8", req, schema.NewIntLogicalType(8, false), parquet.Types.Int32, 0, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("date", req, schema.DateLogicalType{}, parquet.Types.Int32, 0, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("when", req, schema.NewTimestampLogicalType(true, schema.TimeUnitMicros), parquet.Types.Int64, 0, -1)),
		schema.MustGroup(schema.NewGroupNode("place", opt, schema.FieldList{leaf}, -1)),
	}
}

// typesFile has other types, optional and required, and a field of a group.
func typesFile(t *testing.T) string {
	return parquetFile(t, otherNodes(), func(i int, w file.ColumnChunkWriter) {
		def := []int16{1, 0, 1}
		switch w := w.(type) {
		case *file.BooleanColumnChunkWriter:
			w.WriteBatch([]bool{true, false}, def, nil)
		case *file.FixedLenByteArrayColumnChunkWriter:
			w.WriteBatch([]parquet.FixedLenByteArray{[]byte("ab"), []byte("cd")}, def, nil)
		case *file.Int32ColumnChunkWriter:
			w.WriteBatch([]int32{7, 8, 9}, nil, nil)
		case *file.Int64ColumnChunkWriter:
			w.WriteBatch([]int64{7, 8, 9}, nil, nil)
		case *file.Float64ColumnChunkWriter:
			w.WriteBatch([]float64{2.5}, []int16{0, 1, 2}, nil)
		}
	})
}

// refusedFile has columns that cannot be read, one that can, and no row.
func refusedFile(t *testing.T) string {
	return parquetFile(t, schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNode("list", parquet.Repetitions.Repeated, parquet.Types.Int64, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("price", parquet.Repetitions.Required, schema.NewDecimalLogicalType(38, 20), parquet.Types.FixedLenByteArray, 16, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNode("old", parquet.Repetitions.Required, parquet.Types.Int96, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNode("x", parquet.Repetitions.Required, parquet.Types.Int64, -1, -1)),
	}, func(i int, w file.ColumnChunkWriter) {})
}

// oldFile has what older writers say by a converted type, a column of nulls alone, and
// types of which only the bytes could be given.
func oldFile(t *testing.T) string {
	opt := parquet.Repetitions.Optional
	leaf := func(name string, p parquet.Type, c schema.ConvertedType, size int) schema.Node {
		return schema.MustPrimitive(schema.NewPrimitiveNodeConverted(name, opt, p, c, size, 0, 0, -1))
	}
	nodes := schema.FieldList{
		leaf("u64", parquet.Types.Int64, schema.ConvertedTypes.Uint64, -1),
		leaf("i8", parquet.Types.Int32, schema.ConvertedTypes.Int8, -1),
		leaf("json", parquet.Types.ByteArray, schema.ConvertedTypes.JSON, -1),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("nothing", opt, schema.NullLogicalType{}, parquet.Types.Int32, 0, -1)),
		leaf("span", parquet.Types.FixedLenByteArray, schema.ConvertedTypes.Interval, 12),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("half", opt, schema.Float16LogicalType{}, parquet.Types.FixedLenByteArray, 2, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("uuid", opt, schema.UUIDLogicalType{}, parquet.Types.FixedLenByteArray, 16, -1)),
	}
	return parquetFile(t, nodes, func(i int, w file.ColumnChunkWriter) {
		def := []int16{0, 1}
		switch w := w.(type) {
		case *file.Int64ColumnChunkWriter:
			w.WriteBatch([]int64{-1}, def, nil)
		case *file.Int32ColumnChunkWriter:
			if i == 3 {
				def = []int16{0, 0}
			}
			w.WriteBatch([]int32{-1}[:def[1]], def, nil)
		case *file.ByteArrayColumnChunkWriter:
			w.WriteBatch([]parquet.ByteArray{[]byte("{}")}, def, nil)
		case *file.FixedLenByteArrayColumnChunkWriter:
			w.WriteBatch([]parquet.FixedLenByteArray{bytes.Repeat([]byte("u"), []int{12, 2, 16}[i-4])}, def, nil)
		}
	})
}

// encodedFile has a column for every encoding that a type can have, and for a dictionary,
// in row groups of 50 rows and small pages. The columns take turns to be compressed in
// every way, the first in the given one.
func encodedFile(t *testing.T, codec int, opts ...parquet.WriterProperty) string {
	var fields []table.Field
	opts = append(opts, parquet.WithDataPageSize(100), parquet.WithBatchSize(8), parquet.WithDictionaryDefault(false))
	for _, f := range everyType {
		for i, enc := range append([]parquet.Encoding{parquet.Encodings.RLEDict}, encodings[f.Type]...) {
			name := f.Type.String() + " " + strings.ToLower(enc.String())
			fields = append(fields, table.Field{Name: name, Type: f.Type})
			opts = append(opts, parquet.WithCompressionFor(name, codecs[codec%len(codecs)]))
			codec++
			if i == 0 {
				opts = append(opts, parquet.WithDictionaryFor(name, true))
			} else {
				opts = append(opts, parquet.WithEncodingFor(name, enc))
			}
		}
	}
	var batches []*table.Batch
	for group := range 2 {
		b := new(table.Batch)
		b.Reset(fields)
		b.Rows = 50
		for i := range b.Columns {
			for row := range b.Rows {
				appendRow(&b.Columns[i], group*b.Rows+row)
			}
			b.Columns[i].Seal()
		}
		batches = append(batches, b)
	}
	return oracleFile(t, fields, batches, opts...)
}

// appendRow appends what a row has in all columns of a type: squares, from the ends of
// the type in turn, and words; every seventh is null. The test of package table that reads
// the file knows the same.
func appendRow(c *table.Column, row int) {
	n := int64(row * row)
	if row%2 == 1 {
		n = math.MaxInt64 - n
	}
	switch {
	case row%7 == 6:
		c.AppendNull()
	case c.Type == table.Int64:
		c.Int64 = append(c.Int64, n)
	case c.Type == table.Uint64:
		c.Uint64 = append(c.Uint64, uint64(-n))
	case c.Type == table.Int32:
		c.Int32 = append(c.Int32, int32(n))
	case c.Type == table.Uint32:
		c.Uint32 = append(c.Uint32, uint32(n))
	case c.Type == table.Float64:
		c.Float64 = append(c.Float64, float64(n)/8)
	case c.Type == table.Float32:
		c.Float32 = append(c.Float32, float32(n)/8)
	default:
		c.String = append(c.String, strings.Repeat("word", row%3)+string(rune('a'+row%26)))
	}
}

// encodings are those that a type can have, apart from a dictionary's.
var encodings = func() map[table.Type][]parquet.Encoding {
	e := parquet.Encodings
	whole, fraction := []parquet.Encoding{e.Plain, e.DeltaBinaryPacked, e.ByteStreamSplit}, []parquet.Encoding{e.Plain, e.ByteStreamSplit}
	return map[table.Type][]parquet.Encoding{
		table.Int64: whole, table.Uint64: whole, table.Int32: whole, table.Uint32: whole, table.Float64: fraction, table.Float32: fraction,
		table.String: {e.Plain, e.DeltaByteArray, e.DeltaLengthByteArray},
	}
}()

var codecs = []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli, compress.Codecs.Lz4Raw}
