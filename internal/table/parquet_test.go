package table

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/seed"
)

// TestParquetTypes tests other types, optional and required, and fields of
// groups.
func TestParquetTypes(t *testing.T) {
	b := readAll(t, "testdata/arrow-types.parquet", Options{})
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
	c := readAll(t, "testdata/arrow-types.parquet", Options{Columns: []string{"when"}, Types: map[string]Type{"when": String}}).Columns[0]
	if c.String[2] != "1970-01-01T00:00:00.000009Z" {
		t.Errorf("%+v", c)
	}
}

// TestParquetRefused tests that lists and decimals of very many digits are refused by name, and do
// not matter if they are not wanted.
func TestParquetRefused(t *testing.T) {
	path := "testdata/arrow-refused.parquet"
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

// TestParquetLarge tests many pages and row groups, and every compression, with any number
// of workers.
func TestParquetLarge(t *testing.T) {
	type row struct {
		A *int64  `parquet:"a,optional"`
		B string  `parquet:"b,dict"`
		G *string `parquet:"g,optional"`
	}
	r := seed.Rand(t)
	fields := []Field{{Name: "a", Type: Int64}, {Name: "b", Type: String}, {Name: "g", Type: String}}
	want := randomBatch(r, fields, batchRows+20_000+r.IntN(1000), true)
	want.Columns[1] = randomBatch(r, fields[1:2], want.Rows, false).Columns[0]
	rows := make([]row, want.Rows)
	for i := range rows {
		rows[i].B = want.Columns[1].String[i]
		if c := &want.Columns[0]; !c.IsNull(i) {
			rows[i].A = &c.Int64[i]
		}
		if c := &want.Columns[2]; !c.IsNull(i) {
			rows[i].G = &c.String[i]
		}
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw} {
		for version := 1; version <= 2; version++ {
			var out bytes.Buffer
			if err := parquet.Write(&out, rows, parquet.Compression(codec), parquet.DataPageVersion(version),
				parquet.PageBufferSize(10_000), parquet.MaxRowsPerRowGroup(20_000)); err != nil {
				t.Fatal(err)
			}
			got := readAll(t, tempFile(t, "x.parquet", out.String()), Options{Workers: 1 + r.IntN(4)})
			if diff := equal(got, want); diff != "" {
				t.Fatalf("%v, pages of version %d: %s", codec, version, diff)
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

// TestParquetNames tests columns in any order and of any name, over several pages.
func TestParquetNames(t *testing.T) {
	r := seed.Rand(t)
	fields := slices.Clone(everyType)
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	fields = append(fields, Field{Name: "with space, and a comma", Type: String}, Field{Name: "1", Type: Int64}, Field{Name: "", Type: Float64})
	for _, nulls := range []bool{false, true} {
		var batches []*Batch
		var want Batch
		want.Reset(fields)
		for n := range 4 {
			b := randomBatch(r, fields, n*r.IntN(seed.Size(8000, 20_000)), nulls)
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
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n != 2 {
		t.Errorf("%d row groups", n)
	}
	got := readAll(t, tempFile(t, "x.parquet", string(data)), Options{}).Columns[0].Uint32
	if want := slices.Repeat(b.Columns[0].Uint32, 5); !slices.Equal(got, want) {
		t.Errorf("%d values, not the %d that were written", len(got), len(want))
	}
}

// TestParquetEncodings: every encoding that a type can have, compressed in each way, in
// pages of both versions. Package tests/parquet has written the files with Arrow's library,
// and tries more of them.
func TestParquetEncodings(t *testing.T) {
	for _, path := range []string{"testdata/arrow-v1.parquet", "testdata/arrow-v2.parquet"} {
		b := readAll(t, path, Options{})
		if b.Rows != 100 || len(b.Columns) != 26 {
			t.Fatalf("%s: %d rows of %d columns", path, b.Rows, len(b.Columns))
		}
		for i := range b.Columns {
			c := &b.Columns[i]
			if name, _, _ := strings.Cut(c.Name, " "); name != c.Type.String() {
				t.Errorf("%s: %s is %v", path, c.Name, c.Type)
			}
			for row := range b.Rows {
				n := int64(row * row)
				if row%2 == 1 {
					n = math.MaxInt64 - n
				}
				null, ok := row%7 == 6, true
				switch c.Type {
				case Int64:
					ok = c.Int64[row] == n
				case Uint64:
					ok = c.Uint64[row] == uint64(-n)
				case Int32:
					ok = c.Int32[row] == int32(n)
				case Uint32:
					ok = c.Uint32[row] == uint32(n)
				case Float64:
					ok = c.Float64[row] == float64(n)/8
				case Float32:
					ok = c.Float32[row] == float32(n)/8
				case String:
					ok = c.String[row] == strings.Repeat("word", row%3)+string(rune('a'+row%26))
				}
				if null != c.IsNull(row) || !null && !ok {
					t.Fatalf("%s: %s in row %d: %s, null %v", path, c.Name, row, CellText(c, row), c.IsNull(row))
				}
			}
		}
	}
}

// TestParquetOldTypes: what older writers say by a converted type, columns of
// nulls alone, and types of which only the bytes could be given.
func TestParquetOldTypes(t *testing.T) {
	path := "testdata/arrow-old.parquet"
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
	for _, path := range []string{"testdata/arrow-v1.parquet", "testdata/arrow-v2.parquet", "testdata/arrow-types.parquet"} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range seed.Times(120, 1500) {
			data := slices.Clone(whole)
			for range 1 + r.IntN(3) {
				data[r.IntN(len(data))] = byte(r.Uint32())
			}
			fuzz(t, "parquet", data, Options{Workers: 1})
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
