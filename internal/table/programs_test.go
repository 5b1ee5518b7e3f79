package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/table/cols"
)

// programFiles are small files that other programs have written, the types that their
// columns are read as, and rows as text: DuckDB 1.5.6 with pages of version 2, in which
// differences between numbers of 32 bits take 33; polars 0.26.1; and apache-arrow 21.2.0
// of JavaScript, whose dates are moments.
var programFiles = []struct{ path, types, first, last string }{
	{"duckdb.parquet",
		"id int32, u32 uint32, i32 int32, clock time[us], u uuid, price decimal[2], bin binary, i8 int32, u16 uint32",
		"0|4294967295|-2147483648|12:00:00.5|00000000-0000-0000-0000-000000000000|-1.50|\xff\x00|0|0",
		"3|7295|2147483647|12:00:03.5|00000000-0000-0000-0000-000000000003|1.50|\xff\x03|3|3"},
	{"polars.parquet",
		"id int32, s string, i8 int32, u16 uint32, price decimal[2], wide decimal[2], clock time[ns], cat string, at timestamp[us,utc]",
		"0|a|-1|1|0.00|0.00|00:00:00|a|1970-01-01T00:00:00Z",
		"3|d|4|65535|3.00|3.00|00:00:00.003000009|d|1970-01-01T00:00:03.000009Z"},
	{"polars.arrow",
		"id int32, s string, i8 int32, u16 uint32, price decimal[2], wide decimal[2], clock time[ns], cat string, at timestamp[us,utc]",
		"0|a|-1|1|0.00|0.00|00:00:00|a|1970-01-01T00:00:00Z",
		"3|d|4|65535|3.00|3.00|00:00:00.003000009|d|1970-01-01T00:00:03.000009Z"},
	{"dates.arrow", "id int32, when timestamp[ms], cat string, n int32",
		"0|1970-01-01T00:00:00|x|7", "2||x|9"},
}

// TestFilesOfPrograms tests that files of other programs are read as what they are.
func TestFilesOfPrograms(t *testing.T) {
	for _, f := range programFiles {
		b := readAll(t, "testdata/"+f.path, Options{Columns: columnsOf(f.types)})
		if got := typesOf(b); got != f.types {
			t.Errorf("%s: %s, want %s", f.path, got, f.types)
		}
		if first, last := rowText(b, 0), rowText(b, b.Rows-1); first != f.first || last != f.last {
			t.Errorf("%s: %q\n%q, want %q\n%q", f.path, first, last, f.first, f.last)
		}
	}
}

// TestProgramsPassed tests that columns of these files keep what they are when they are
// passed on, to the other format as well.
func TestProgramsPassed(t *testing.T) {
	for _, f := range programFiles {
		text := passOn(t, "testdata/"+f.path, "csv", Options{})
		for _, way := range [][]string{{"parquet"}, {"arrow"}, {"parquet", "arrow"}, {"arrow", "parquet"}} {
			path := "testdata/" + f.path
			for _, format := range way {
				path = tempFile(t, "x."+format, passOn(t, path, format, Options{}))
			}
			if got := passOn(t, path, "csv", Options{}); got != text {
				t.Errorf("%s by way of %v: %s, want %s", f.path, way, got, text)
			}
			wanted := columnsOf(f.types)
			before, after := readAll(t, "testdata/"+f.path, Options{Columns: wanted}), readAll(t, path, Options{Columns: wanted})
			if a, b := typesOf(before), typesOf(after); a != b {
				t.Errorf("%s by way of %v: %s, want %s", f.path, way, b, a)
			}
		}
	}
	if text := passOn(t, "testdata/duckdb.parquet", "jsonl", Options{Columns: []string{"span"}}); !strings.HasPrefix(text, "{\"span\":\"P0M0DT1.5S\"}\n{\"span\":null}\n{\"span\":\"P2M0DT1.5S\"}") {
		t.Errorf("intervals are %s", text)
	}
}

func columnsOf(types string) (names []string) {
	for _, c := range strings.Split(types, ", ") {
		name, _, _ := strings.Cut(c, " ")
		names = append(names, name)
	}
	return names
}

func typesOf(b *Batch) string {
	var types []string
	for _, c := range b.Columns {
		t := c.Type.String()
		if c.Kind != (cols.Kind{}) {
			t = c.Kind.String()
		}
		types = append(types, c.Name+" "+t)
	}
	return strings.Join(types, ", ")
}

func rowText(b *Batch, row int) string {
	var cells []string
	for i := range b.Columns {
		if c := &b.Columns[i]; c.IsNull(row) {
			cells = append(cells, "")
		} else {
			cells = append(cells, CellText(c, row))
		}
	}
	return strings.Join(cells, "|")
}

// TestUUIDs tests that UUIDs are read from text in the ways that people write them, and
// that others are refused.
func TestUUIDs(t *testing.T) {
	want := "\x12\x34\x56\x78\x9a\xbc\xde\xf0\x01\x02\x03\x04\x05\x06\x07\x08"
	for _, s := range []string{"12345678-9abc-def0-0102-030405060708", "12345678-9ABC-DEF0-0102-030405060708", "{12345678-9abc-def0-0102-030405060708}", "123456789abcdef00102030405060708"} {
		if id, ok := ParseUUID(s); !ok || id != want {
			t.Errorf("%s: %x, %v", s, id, ok)
		}
	}
	for _, s := range []string{"", "{}", "1234", "12345678-9abc-def0-0102-03040506070g", "12345678+9abc-def0-0102-030405060708", strings.Repeat("0", 33)} {
		if _, ok := ParseUUID(s); ok {
			t.Errorf("%q is a UUID", s)
		}
	}
	path := tempFile(t, "x.csv", "id,n\n12345678-9ABC-DEF0-0102-030405060708,1\n,2\n")
	o := Options{Types: map[string]Type{"id": String}, Kinds: map[string]Kind{"id": {Of: cols.UUID}}}
	if c := readAll(t, path, o).Columns[0]; c.String[0] != want || !c.IsNull(1) {
		t.Errorf("%+v", c)
	}
	if _, err := readErr(tempFile(t, "y.csv", "id,n\nx,1\n"), o); err == nil || !strings.Contains(err.Error(), `"x" is no uuid`) {
		t.Errorf("%v", err)
	}
}

// TestDecimalBytes tests decimals at the edges of 64 bits, and beyond.
func TestDecimalBytes(t *testing.T) {
	for _, c := range []struct {
		b    string
		want int64
		ok   bool
	}{
		{"", 0, true}, {"\x01", 1, true}, {"\xff", -1, true}, {"\x00\xff", 255, true}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", -2, true},
		{"\x7f\xff\xff\xff\xff\xff\xff\xff", 1<<63 - 1, true}, {"\x80\x00\x00\x00\x00\x00\x00\x00", -1 << 63, true},
		{"\x00\x80\x00\x00\x00\x00\x00\x00\x00", 0, false}, {"\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 0, false},
	} {
		if v, ok := bigEndian(c.b); ok != c.ok || ok && v != c.want {
			t.Errorf("%s: %d, %v", fmt.Sprintf("% x", c.b), v, ok)
		}
	}
}
