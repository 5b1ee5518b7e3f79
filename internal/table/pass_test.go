package table

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

// passed is a row with what only Parquet has.
type passed struct {
	ID    int64             `parquet:"id"`
	Day   int32             `parquet:"day,date"`
	At    time.Time         `parquet:"at,timestamp(microsecond)"`
	OK    bool              `parquet:"ok"`
	Cents int64             `parquet:"cents,decimal(2:18)"`
	UUID  [16]byte          `parquet:"uuid,uuid"`
	Small int8              `parquet:"small"`
	Bytes []byte            `parquet:"bytes"`
	Maybe *bool             `parquet:"maybe,optional"`
	List  []int32           `parquet:"list,list"`
	Deep  []*deeper         `parquet:"deep,list"`
	Map   map[string]string `parquet:"map"`
	Name  string            `parquet:"name"`
}

type deeper struct {
	Tags []string `parquet:"tags,list"`
	Lat  *float64 `parquet:"lat,optional"`
}

func passedRows(n int) (rows []passed) {
	for i := range n {
		r := passed{ID: int64(i), Day: int32(18262 + i), At: time.Unix(1577836800, int64(i)*1000).UTC(), OK: i%2 == 0, Cents: int64(i) - 150,
			UUID: [16]byte{15: byte(i)}, Small: int8(i), Bytes: []byte{0xff, byte(i)}, List: []int32{}, Deep: []*deeper{}, Map: map[string]string{},
			Name: fmt.Sprint("n", i)}
		if i%3 == 0 {
			yes, lat := true, 1.5
			r.Maybe, r.List, r.Map = &yes, []int32{1, int32(i)}, map[string]string{"k": "v"}
			r.Deep = []*deeper{{Tags: []string{"a", "b"}, Lat: &lat}, {Tags: []string{}}}
		}
		rows = append(rows, r)
	}
	return rows
}

// passOn reads a file with Pass and writes it in a format.
func passOn(t *testing.T, path, format string, o Options) string {
	t.Helper()
	text, err := tryPass(t, path, format, o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tryPass is passOn that returns an error of rows.
func tryPass(t *testing.T, path, format string, o Options) (string, error) {
	t.Helper()
	o.Pass = true
	src, err := Open(path, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var out bytes.Buffer
	sink, err := NewSink(&out, format, src.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for err = src.Next(&b); err == nil; err = src.Next(&b) {
		for i := range b.Columns { // as join does
			if f := b.Columns[i].Foreign; f != nil {
				rows := make([]int, b.Rows)
				for k := range rows {
					rows[k] = k
				}
				b.Columns[i].Foreign = f.Pick(rows)
			}
		}
		if err := sink.Write(&b); err != nil {
			return "", err
		}
	}
	if err != io.EOF {
		return "", err
	}
	err = sink.Close()
	return out.String(), err
}

// TestPassParquet tests that columns of any type come out of a Parquet file and go
// into another as they are, over pages, batches and row groups.
func TestPassParquet(t *testing.T) {
	want := passedRows(40_000)
	path := tempFile(t, "x.parquet", "")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[passed](f, parquet.PageBufferSize(4<<10), parquet.MaxRowsPerRowGroup(35_000))
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	w.Close()
	f.Close()
	out := passOn(t, path, "parquet", Options{})
	r := parquet.NewGenericReader[passed](strings.NewReader(out))
	defer r.Close()
	had, err := parquet.OpenFile(strings.NewReader(out), int64(len(out)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"day (DATE)", "at (TIMESTAMP", "boolean ok", "DECIMAL(18,2)", "(UUID)", "INT(8,true)", "binary bytes;", "(LIST)", "(MAP)"} {
		if text := had.Schema().String(); !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	got := make([]passed, len(want))
	if n, _ := r.Read(got); n != len(want) {
		t.Fatalf("%d rows of %d", n, len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	lines := strings.Split(passOn(t, path, "jsonl", Options{}), "\n")
	const first = `{"id":0,"day":"2020-01-01","at":"2020-01-01T00:00:00Z","ok":true,"cents":-1.50,"uuid":"00000000-0000-0000-0000-000000000000",` +
		`"small":0,"bytes":"\ufffd\u0000","maybe":true,"list":[1,0],"deep":[{"tags":["a","b"],"lat":1.5},{"tags":[],"lat":null}],` +
		`"map":[{"key":"k","value":"v"}],"name":"n0"}`
	if got := strings.ReplaceAll(lines[0], "\ufffd", `\ufffd`); got != first {
		t.Errorf("%s, want %s", got, first)
	}
	if !strings.Contains(lines[1], `"maybe":null,"list":[],"deep":[],"map":[]`) {
		t.Error(lines[1])
	}
	csv := passOn(t, path, "csv", Options{Columns: []string{"day", "at", "cents", "list", "name"}})
	if want := "day,at,cents,list,name\n2020-01-01,2020-01-01T00:00:00Z,-1.50,\"[1,0]\",n0\n"; !strings.HasPrefix(csv, want) {
		t.Errorf("%.100s, want %s", csv, want)
	}
}

// TestPassArrow tests the same for Arrow, and that dates, timestamps and truth
// values go from one format into the other.
func TestPassArrow(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int16)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, Nullable: true},
		{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "cents", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
		{Name: "list", Type: list, Nullable: true},
		{Name: "word", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
	}, nil)
	const rows = `[{"day":"2020-01-31","at":"2020-01-31T00:00:00.5Z","ok":true,"cents":"1.50","list":[1,null],"word":"a"},
		{"day":null,"at":null,"ok":null,"cents":null,"list":null,"word":null},
		{"day":"1969-12-31","at":"1969-12-31T23:59:59Z","ok":false,"cents":"-0.05","list":[],"word":"b"}]`
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	path := tempFile(t, "x.arrow", arrowFile(t, false, []arrow.RecordBatch{record, record}))
	r, err := ipc.NewReader(strings.NewReader(passOn(t, path, "arrow", Options{})))
	if err != nil || !r.Schema().Equal(schema) {
		t.Fatalf("%v, schema %v", err, r.Schema())
	}
	for range 2 {
		if got, err := r.Read(); err != nil || !array.RecordEqual(got, record) {
			t.Fatalf("%v: %v, want %v", err, got, record)
		}
	}
	const first = `{"day":"2020-01-31","at":"2020-01-31T00:00:00.5Z","ok":true,"cents":1.50,"list":[1,null],"word":"a"}`
	if got := passOn(t, path, "jsonl", Options{}); !strings.HasPrefix(got, first+"\n") {
		t.Errorf("%s, want %s", got, first)
	}
	other := tempFile(t, "x.parquet", passOn(t, path, "parquet", Options{}))
	back := tempFile(t, "y.arrow", passOn(t, other, "arrow", Options{}))
	const text = "2020-01-31\t2020-01-31T00:00:00.5Z\ttrue\t1.50\t[1,null]\ta\n\t\t\t\t\t\n1969-12-31\t1969-12-31T23:59:59Z\tfalse\t-0.05\t[]\tb\n"
	for _, p := range []string{path, other, back} {
		if got := passOn(t, p, "text", Options{}); got != text+text {
			t.Errorf("%s: %s, want %s", p, got, text)
		}
	}
}

// TestPassDecimals tests that decimals have as many digits as before when they have gone
// from one format into the other.
func TestPassDecimals(t *testing.T) {
	var fields []arrow.Field
	for _, d := range [][2]int32{{4, 0}, {9, 2}, {10, 2}, {18, 3}, {19, 4}, {20, 3}, {38, 10}} {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("d", d), Type: &arrow.Decimal128Type{Precision: d[0], Scale: d[1]}, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	row := ""
	for _, f := range fields {
		row += fmt.Sprintf(`,%q:"1"`, f.Name)
	}
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("[{"+row[1:]+"}]"))
	if err != nil {
		t.Fatal(err)
	}
	path := tempFile(t, "x.arrow", arrowFile(t, false, []arrow.RecordBatch{record}))
	other := tempFile(t, "x.parquet", passOn(t, path, "parquet", Options{}))
	r, err := ipc.NewReader(strings.NewReader(passOn(t, other, "arrow", Options{})))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Read()
	if err != nil || !got.Schema().Equal(schema) || !array.RecordEqual(got, record) {
		t.Errorf("%v: %v, want %v", err, got, record)
	}
}

// TestPassBrokenDecimals tests that a decimal of more digits than its own type declares
// is an error in Parquet, which has no room for them, and none beside it is.
func TestPassBrokenDecimals(t *testing.T) {
	for _, c := range []struct {
		precision int32
		value     decimal256.Num
		good      bool
	}{
		{9, decimal256.FromI64(999_999_999), true},
		{9, decimal256.FromI64(-999_999_999), true},
		{9, decimal256.FromI64(1_000_000_000), false},
		{9, decimal256.FromI64(1<<32 + 1), false},
		{18, decimal256.FromI64(-1_000_000_000_000_000_000), false},
		{18, decimal256.New(0, 0, 1, 1), false},
		{38, decimal256.New(0, 0, 1, 1), true},
		{38, decimal256.New(0, 1, 0, 0), false},
	} {
		typ := &arrow.Decimal256Type{Precision: c.precision}
		b := array.NewDecimal256Builder(memory.DefaultAllocator, typ)
		b.AppendNull()
		b.Append(c.value)
		record := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "d", Type: typ, Nullable: true}}, nil), []arrow.Array{b.NewArray()}, 2)
		path := tempFile(t, "x.arrow", arrowFile(t, false, []arrow.RecordBatch{record}))
		_, err := tryPass(t, path, "parquet", Options{})
		if c.good != (err == nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("column \"d\": a decimal has more than the %d digits of its type", c.precision)) {
			t.Errorf("%v of %d digits: %v", c.value.BigInt(), c.precision, err)
		}
	}
}

// TestParquetBytes tests that strings which are not UTF-8 are not called so, that
// others of the same file are, and that UUIDs are read as people write them.
func TestParquetBytes(t *testing.T) {
	fields := []Field{{Name: "good", Type: String}, {Name: "bad", Type: String}}
	b := &Batch{Rows: 2, Columns: []Column{{Field: fields[0], String: []string{"é", "b"}}, {Field: fields[1], String: []string{"é", "\xff"}}}}
	data := write(t, "parquet", fields, b)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if text := f.Schema().String(); !strings.Contains(text, "good (STRING)") || !strings.Contains(text, "binary bad;") {
		t.Error(text)
	}
	got := readAll(t, tempFile(t, "x.parquet", string(data)), Options{})
	if got.Columns[1].String[1] != "\xff" || got.Columns[0].String[0] != "é" {
		t.Errorf("%+v", got)
	}
	type row struct {
		ID [16]byte `parquet:"id,uuid"`
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, []row{{[16]byte{0xab, 15: 1}}}); err != nil {
		t.Fatal(err)
	}
	ids := readAll(t, tempFile(t, "id.parquet", out.String()), Options{})
	if id := CellText(&ids.Columns[0], 0); id != "ab000000-0000-0000-0000-000000000001" {
		t.Errorf("%q", id)
	}
	var text bytes.Buffer
	sink, err := NewSink(&text, "jsonl", fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(b); err != nil {
		t.Fatal(err)
	}
	if w := sink.(*lineSink).Warnings(); len(w) != 1 || !strings.Contains(w[0], "in 1 of them") {
		t.Errorf("%q", w)
	}
}

// TestParquetGroups tests that a column which is a list or a group is not said to be
// not there.
func TestParquetGroups(t *testing.T) {
	type place struct {
		Lat float64 `parquet:"lat"`
	}
	type row struct {
		Tags  []string `parquet:"tags,list"`
		Place place    `parquet:"place"`
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, []row{{}}); err != nil {
		t.Fatal(err)
	}
	path := tempFile(t, "x.parquet", out.String())
	for name, want := range map[string]string{"tags": "has lists or maps", "place": "name one of them: place.lat", "no": "there is no column"} {
		if _, err := readErr(path, Options{Columns: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
