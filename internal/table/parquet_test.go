package table

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/seed"
)

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
				s += " " + string(appendPlain(c, nil, row))
			}
		}
		got = append(got, s)
	}
	want := "bool string true null false|fixed string ab null cd|u8 uint32 7 8 9|date int32 1970-01-08 1970-01-09 1970-01-10|when int64 1970-01-01T00:00:00.000007Z 1970-01-01T00:00:00.000008Z 1970-01-01T00:00:00.000009Z|place.lat float64 null null 2.5"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	c := readAll(t, tempFile(t, "x.parquet", data), Options{Columns: []string{"when"}, Types: map[string]Type{"when": String}}).Columns[0]
	if c.String[2] != "1970-01-01T00:00:00.000009Z" {
		t.Errorf("%+v", c)
	}
}

// TestParquetRefused tests that lists and decimals of very many digits are refused by name, and do
// not matter if they are not wanted.
func TestParquetRefused(t *testing.T) {
	nodes := schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNode("list", parquet.Repetitions.Repeated, parquet.Types.Int64, -1, -1)),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("price", parquet.Repetitions.Required, schema.NewDecimalLogicalType(38, 20), parquet.Types.FixedLenByteArray, 16, -1)),
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
	schema7 := []Field{{Name: "a", Type: Int64}, {Name: "g", Type: String}}
	var batches []*Batch
	var want Batch
	want.Reset(schema7)
	for range 3 {
		b := randomBatch(r, schema7, batchRows+r.IntN(1000), true)
		batches = append(batches, b)
		gatherAll(t, &want, b)
	}
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli, compress.Codecs.Lz4Raw} {
		for _, v := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			for _, dictionary := range []bool{false, true} {
				path := tempFile(t, "x.parquet", oracleFile(t, schema7, batches, parquet.WithCompression(codec),
					parquet.WithDataPageVersion(v), parquet.WithDictionaryDefault(dictionary), parquet.WithDataPageSize(10_000)))
				got := readAll(t, path, Options{Workers: 1 + r.IntN(4)})
				if diff := equal(got, &want); diff != "" {
					t.Fatalf("%v %v dictionary %v: %s", codec, v, dictionary, diff)
				}
			}
		}
	}
}

// TestCloseEarly: a source may be closed in the middle, and Next says so.
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

// TestParquetOracle: Arrow's library reads what is written here, with the
// columns in their order, over several pages and row groups.
func TestParquetOracle(t *testing.T) {
	r := seed.Rand(t)
	fields := slices.Clone(everyType)
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	fields = append(fields, Field{Name: "with space, and a comma", Type: String}, Field{Name: "1", Type: Int64}, Field{Name: "", Type: Float64})
	for _, nulls := range []bool{false, true} {
		var batches []*Batch
		var want Batch
		want.Reset(fields)
		for rows := range []int{0, 1, 2, 3} {
			b := randomBatch(r, fields, rows*r.IntN(seed.Size(8000, 20_000)), nulls)
			for i := range b.Columns { // more words than a dictionary holds
				for j, s := range b.Columns[i].String {
					if s == "x" {
						b.Columns[i].String[j] = strings.Repeat("x", r.IntN(200))
					}
				}
			}
			batches = append(batches, b)
			gatherAll(t, &want, b)
		}
		data := write(t, "parquet", fields, batches...)
		if diff := equal(oracleRead(t, data, fields), &want); diff != "" {
			t.Fatal(diff)
		}
		if diff := equal(readAll(t, tempFile(t, "x.parquet", string(data)), Options{}), &want); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestParquetRowGroups: a file of more rows than a row group has.
func TestParquetRowGroups(t *testing.T) {
	fields := []Field{{Name: "a", Type: Uint32}}
	b := new(Batch)
	b.Reset(fields)
	for i := range uint32(groupRows/4 + 1) {
		b.Columns[0].Uint32 = append(b.Columns[0].Uint32, i)
	}
	b.Rows = b.Columns[0].Len()
	data := write(t, "parquet", fields, b, b, b, b, b)
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if n := f.NumRowGroups(); n != 2 {
		t.Errorf("%d row groups", n)
	}
	got := readAll(t, tempFile(t, "x.parquet", string(data)), Options{}).Columns[0].Uint32
	if want := slices.Repeat(b.Columns[0].Uint32, 5); !slices.Equal(got, want) {
		t.Errorf("%d values, not the %d that were written", len(got), len(want))
	}
}

// TestParquetEncodings: every encoding that a type can have.
func TestParquetEncodings(t *testing.T) {
	r := seed.Rand(t)
	e := parquet.Encodings
	of := map[Type][]parquet.Encoding{
		Int64: {e.Plain, e.DeltaBinaryPacked, e.ByteStreamSplit}, Uint64: {e.Plain, e.DeltaBinaryPacked, e.ByteStreamSplit},
		Int32: {e.Plain, e.DeltaBinaryPacked, e.ByteStreamSplit}, Uint32: {e.Plain, e.DeltaBinaryPacked, e.ByteStreamSplit},
		Float64: {e.Plain, e.ByteStreamSplit}, Float32: {e.Plain, e.ByteStreamSplit},
		String: {e.Plain, e.DeltaByteArray, e.DeltaLengthByteArray},
	}
	for _, f := range everyType {
		for _, enc := range of[f.Type] {
			for _, rows := range []int{1, 3, 10_000} {
				b := randomBatch(r, []Field{f}, rows, r.IntN(2) == 0)
				data := oracleFile(t, []Field{f}, []*Batch{b}, parquet.WithDictionaryDefault(false), parquet.WithEncoding(enc), parquet.WithDataPageSize(1000))
				if diff := equal(readAll(t, tempFile(t, "x.parquet", data), Options{}), b); diff != "" {
					t.Fatalf("%v as %v: %s", f.Type, enc, diff)
				}
			}
		}
	}
}

// TestParquetOldTypes: what older writers say by a converted type, columns of
// nulls alone, and types of which only the bytes could be given.
func TestParquetOldTypes(t *testing.T) {
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
	path := tempFile(t, "x.parquet", parquetFile(t, nodes, func(i int, w file.ColumnChunkWriter) {
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
	}))
	for name, want := range map[string]string{"span": "intervals", "half": "16 bits"} {
		if _, err := readErr(path, Options{Columns: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := readAll(t, path, Options{Columns: []string{"u64", "i8", "json", "nothing", "uuid"}})
	c := b.Columns
	if !slices.Equal(c[0].Uint64, []uint64{0, math.MaxUint64}) || !slices.Equal(c[1].Int32, []int32{0, -1}) ||
		!slices.Equal(c[2].String, []string{"", "{}"}) || CellText(&c[4], 1) != "75757575-7575-7575-7575-757575757575" {
		t.Errorf("%+v", b)
	}
	if c[3].Type != Int32 || !c[3].IsNull(0) || !c[3].IsNull(1) || c[0].IsNull(1) || !c[0].IsNull(0) {
		t.Errorf("%+v", b)
	}
}

// TestParquetDamaged: a file with a wrong byte anywhere gives rows or an error,
// and takes no more memory than it should.
func TestParquetDamaged(t *testing.T) {
	r := seed.Rand(t)
	b := randomBatch(r, everyType, 300, true)
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli, compress.Codecs.Lz4Raw} {
		for _, v := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			whole := []byte(oracleFile(t, everyType, []*Batch{b}, parquet.WithCompression(codec), parquet.WithDataPageVersion(v)))
			for range seed.Times(60, 300) {
				data := slices.Clone(whole)
				for range 1 + r.IntN(3) {
					data[r.IntN(len(data))] = byte(r.Uint32())
				}
				fuzz(t, "parquet", data, Options{Workers: 1})
			}
		}
	}
}

// Runs of few bytes that stand for billions of values are refused before there is room for
// them: those of levels, of places in a dictionary, and of yes and no.
func TestParquetLongRuns(t *testing.T) {
	long := []byte{0xfe, 0xff, 0xff, 0xff, 0x0f, 1}         // 2^31-1 times 1
	groups := []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3} // of which few are there
	ok := []byte{0x10, 1, 3, 0x55}                          // 8 times 1, and 8 more
	sized := func(b []byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...) }
	//lint:ignore SA1019 older files have it
	older := format.PlainDictionary
	v1 := func(e format.Encoding) *format.PageHeader {
		h := &format.PageHeader{Type: format.DataPage}
		h.DataPageHeader.Set(format.DataPageHeader{Encoding: e, RepetitionLevelEncoding: format.RLE, DefinitionLevelEncoding: format.RLE})
		return h
	}
	v2 := func(e format.Encoding, levels int) *format.PageHeader {
		h := &format.PageHeader{Type: format.DataPageV2}
		h.DataPageHeaderV2.Set(format.DataPageHeaderV2{Encoding: e, DefinitionLevelsByteLength: int32(levels)})
		return h
	}
	p := &parquetStream{limit: limit{&input{}}, levels: parquetLevels{0, 1}}
	for _, runs := range [][]byte{long, groups, ok} {
		for name, c := range map[string]struct {
			h    *format.PageHeader
			body []byte
		}{
			"levels":        {v1(format.Plain), sized(runs)},
			"dictionary":    {v1(format.RLEDictionary), slices.Concat(sized(ok), []byte{1}, runs)},
			"yes and no":    {v1(format.RLE), slices.Concat(sized(ok), sized(runs))},
			"levels v2":     {v2(format.Plain, len(runs)), runs},
			"dictionary v2": {v2(older, len(ok)), slices.Concat(ok, []byte{1}, runs)},
		} {
			if err := p.checkRuns(c.h, c.body); (err == nil) != (&runs[0] == &ok[0]) {
				t.Errorf("%s of %x: %v", name, runs, err)
			}
			for n := range c.body { // what is cut short is for the library to say
				p.checkRuns(c.h, c.body[:n])
			}
		}
	}
}
