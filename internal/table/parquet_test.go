package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/pando-index/pando/internal/seed"
)

// parquetFile writes one row group with the given nodes; fill writes column i.
func parquetFile(t testing.TB, nodes schema.FieldList, fill func(i int, w file.ColumnChunkWriter), opts ...parquet.WriterProperty) string {
	t.Helper()
	var out bytes.Buffer
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1))
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(parquet.NewWriterProperties(opts...)))
	g, err := w.AppendBufferedRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.NumColumns() {
		c, err := g.Column(i)
		if err != nil {
			t.Fatal(err)
		}
		fill(i, c)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// otherNodes returns types beyond the seven.
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

// TestParquetTypes tests other types, optional and required, and fields of
// groups.
func TestParquetTypes(t *testing.T) {
	data := parquetFile(t, otherNodes(), func(i int, w file.ColumnChunkWriter) {
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
	b := readAll(t, tempFile(t, "x.parquet", data), Options{})
	var got []string
	for i := range b.Columns {
		c := &b.Columns[i]
		s := c.Name + " " + c.Type.String()
		for row := range b.Rows {
			if c.IsNull(row) {
				s += " null"
			} else {
				s += " " + string(c.appendPlain(nil, row))
			}
		}
		got = append(got, s)
	}
	want := "bool string true null false|fixed string ab null cd|u8 uint32 7 8 9|date int32 7 8 9|when int64 7 8 9|place.lat float64 null null 2.5"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	c := readAll(t, tempFile(t, "x.parquet", data), Options{Columns: []string{"when"}, Types: map[string]Type{"when": String}}).Columns[0]
	if strings.Join(c.String, " ") != "7 8 9" {
		t.Errorf("%+v", c)
	}
}

// TestParquetRefused tests that lists and decimals are refused by name, and do
// not matter if they are not wanted.
func TestParquetRefused(t *testing.T) {
	nodes := schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNode("list", parquet.Repetitions.Repeated, parquet.Types.Int64, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("price", parquet.Repetitions.Required, schema.NewDecimalLogicalType(9, 2), parquet.Types.Int64, 0, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNode("old", parquet.Repetitions.Required, parquet.Types.Int96, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNode("x", parquet.Repetitions.Required, parquet.Types.Int64, -1, -1)),
	}
	path := tempFile(t, "x.parquet", parquetFile(t, nodes, func(i int, w file.ColumnChunkWriter) {}))
	for name, want := range map[string]string{"list": "lists", "price": "decimals", "old": "96 bits", "none": "there are: list, price"} {
		if _, err := readErr(path, Options{Columns: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readErr(path, Options{}); err == nil {
		t.Error("a list was read")
	}
	if b := readAll(t, path, Options{Columns: []string{"x"}}); b.Rows != 0 {
		t.Error("rows out of nothing")
	}
}

// TestParquetLarge tests many pages and row groups, every compression and
// encoding, with and without nulls, with any number of workers.
func TestParquetLarge(t *testing.T) {
	r := seed.Rand(t)
	schema7 := []Field{{"a", Int64}, {"g", String}}
	var batches []*Batch
	var want Batch
	want.Reset(schema7)
	for range 3 {
		b := randomBatch(r, schema7, batchRows+r.IntN(1000), true)
		batches = append(batches, b)
		gatherAll(t, &want, b)
	}
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli} {
		for _, v := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			for _, dictionary := range []bool{false, true} {
				path := tempFile(t, "x.parquet", manyGroups(t, schema7, batches, parquet.WithCompression(codec),
					parquet.WithDataPageVersion(v), parquet.WithDictionaryDefault(dictionary), parquet.WithDataPageSize(10_000)))
				got := readAll(t, path, Options{Workers: 1 + r.IntN(4)})
				if diff := equal(got, &want); diff != "" {
					t.Fatalf("%v %v dictionary %v: %s", codec, v, dictionary, diff)
				}
			}
		}
	}
}

// manyGroups writes each batch as a row group.
func manyGroups(t testing.TB, fields []Field, batches []*Batch, opts ...parquet.WriterProperty) string {
	t.Helper()
	var nodes schema.FieldList
	for _, f := range fields {
		n, err := parquetNode(f)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	var out bytes.Buffer
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1))
	s := &parquetSink{w: file.NewParquetWriter(&out, root, file.WithWriterProps(parquet.NewWriterProperties(opts...)))}
	for _, b := range batches {
		if err := s.Write(b); err != nil {
			t.Fatal(err)
		}
		if s.group == nil {
			continue
		}
		if err := s.endGroup(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCloseEarly tests that a source may be closed in the middle, and that
// Next reports it.
func TestCloseEarly(t *testing.T) {
	r := seed.Rand(t)
	b := randomBatch(r, everyType, 5000, true)
	var batches []*Batch
	for range 40 {
		batches = append(batches, b)
	}
	for _, format := range []string{"csv", "jsonl", "arrow", "parquet"} {
		path := tempFile(t, "x."+format, string(write(t, format, everyType, batches...)))
		src, err := Open(path, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got Batch
		if err := src.Next(&got); err != nil {
			t.Fatal(err)
		}
		if done, total := src.Progress(); done <= 0 || done > total {
			t.Errorf("%s: %d of %d bytes", format, done, total)
		}
		for range 2 {
			if err := src.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for i := 0; err == nil && i < 1000; i++ {
			err = src.Next(&got)
		}
		if err == nil {
			t.Errorf("%s: reads on after Close", format)
		}
	}
}
