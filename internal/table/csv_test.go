package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// TestCSVTypes tests that types come from the first rows, and that values have
// them.
func TestCSVTypes(t *testing.T) {
	const text = "\ufeffid,big,price,name,none\r\n" +
		"-1,18446744073709551615,1.5,\"a,\"\"b\"\"\r\nc\",\r\n" +
		"\r\n" +
		" 2 ,,-0.25,,\r\n" +
		"3,7,1e3,x,\r"
	b := readAll(t, tempFile(t, "x.csv", text), Options{})
	var types []Type
	for _, c := range b.Columns {
		types = append(types, c.Type)
	}
	if want := []Type{Int64, Uint64, Float64, String, String}; !slices.Equal(types, want) {
		t.Fatalf("types %v, want %v", types, want)
	}
	c := b.Columns
	if b.Rows != 3 || !slices.Equal(c[0].Int64, []int64{-1, 2, 3}) || c[0].Null != nil {
		t.Errorf("id: %+v", c[0])
	}
	if !slices.Equal(c[1].Uint64, []uint64{1<<64 - 1, 0, 7}) || !slices.Equal(c[1].Null, []bool{false, true, false}) {
		t.Errorf("big: %+v", c[1])
	}
	if !slices.Equal(c[2].Float64, []float64{1.5, -0.25, 1000}) {
		t.Errorf("price: %+v", c[2])
	}
	if !slices.Equal(c[3].String, []string{"a,\"b\"\r\nc", "", "x"}) || c[3].Null != nil {
		t.Errorf("name: %+v", c[3])
	}
}

// TestCSVColumns tests that wanted columns come in the requested order, by
// name or number, with the requested types.
func TestCSVColumns(t *testing.T) {
	path := tempFile(t, "x.csv", "a;b;c\n1;2;3\n4;5;6\n")
	b := readAll(t, path, Options{Comma: ';', Columns: []string{"c", "a"}, Types: map[string]Type{"c": Float32, "a": String}})
	if !slices.Equal(b.Columns[0].Float32, []float32{3, 6}) || !slices.Equal(b.Columns[1].String, []string{"1", "4"}) {
		t.Errorf("%+v", b)
	}
	path = tempFile(t, "x.tsv", "1\t2\n4\t5\n")
	b = readAll(t, path, Options{NoHeader: true, Columns: []string{"2"}, Types: map[string]Type{"2": Uint32}})
	if !slices.Equal(b.Columns[0].Uint32, []uint32{2, 5}) || b.Columns[0].Name != "2" {
		t.Errorf("%+v", b)
	}
	b = readAll(t, tempFile(t, "x.csv", ""), Options{NoHeader: true})
	if b.Rows != 0 || len(b.Columns) != 1 {
		t.Errorf("empty: %+v", b)
	}
}

// testLoss tests that numbers which a guessed type cannot tell apart are told of.
func testLoss(t *testing.T) {
	for text, want := range map[string]string{
		"9007199254740993 0.5":     "does not hold all digits of 9007199254740993",
		"-9007199254740993 0.5":    "does not hold all digits of -9007199254740993",
		"18446744073709551615 0.5": "does not hold all digits of 18446744073709551615",
		"18446744073709551617 0.5": "does not hold all digits of 18446744073709551617",
		"007 0.5":                  "loses zeros as in \"007\"",
		"12345678901234.5678 1":    "does not hold all digits of 12345678901234.5678",
		"9007199254740993.0 1":     "does not hold all digits of 9007199254740993.0",
		"-0.1234567890123456789 1": "does not hold all digits of -0.1234567890123456789",
		"9.007199254740993e15 1":   "does not hold all digits of 9.007199254740993e15",
		"1e-400 1":                 "does not hold all digits of 1e-400",
		"1.2345e-321 1":            "does not hold all digits of 1.2345e-321",
		"9007199254740992 0.5":     "",
		"-9223372036854775808 0.5": "",
		"9007199254740992.0 1":     "",
		"1152921504606846976.0 1":  "", // 2^60
		"0.10000000000000001 1":    "", // as C's %.17g writes 0.1
		"1.500000000000000000e+00": "",
		"0.00000000000000000000 1": "",
		"5e-324 0.30000000000000004 1.7976931348623157e308 2.2250738585072014e-308": "",
		"9007199254740993 5": "",
	} {
		fields := strings.Fields(text)
		for path, content := range map[string]string{"t.csv": "d,x\n" + strings.Join(fields, ",\n") + ",\n", "t.jsonl": `{"d":` + strings.Join(fields, "}\n{\"d\":") + `}`} {
			if path == "t.jsonl" && text[0] == '0' {
				continue // no number of JSON
			}
			src, err := Open(tempFile(t, path, content), nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(src.(interface{ Notes() []string }).Notes(), "\n")
			if !strings.Contains(notes, want) || (want == "") != (notes == "") {
				t.Errorf("%s in %s: %q, want %q", text, path, notes, want)
			}
			src.Close()
		}
	}
}

// TestInference tests that the type is the first of int64, uint64, float64,
// string that holds every value exactly.
func TestInference(t *testing.T) {
	t.Run("loss", testLoss)
	for values, want := range map[string]Type{
		"1 -2 +3":                       Int64,
		"9223372036854775807":           Int64,
		"-9223372036854775808":          Int64,
		"9223372036854775808":           Uint64,
		"18446744073709551615 1":        Uint64,
		"9223372036854775808 -1":        String,
		"18446744073709551616":          String,
		"18446744073709551616 1.5":      Float64,
		"1 2.5":                         Float64,
		"1 NaN -inf":                    Float64,
		"nan inf":                       String,
		"1 x":                           String,
		"1e400":                         String,
		"0x10":                          String,
		"1_000":                         String,
		"":                              String,
		"0000000000000000000000000007":  Int64,
		"-9223372036854775809":          String,
		"99999999999999999999999999 -1": String,
		"2020-01-31 1969-12-31":         Int32,
		"2020-01-31 2020-02-30":         String,
		"2020-01-31 2020-1-31":          String,
		"2020-01-31 20200131":           String,
		"2020-01-31 2020-01-31T00:00":   String,
	} {
		var g guess
		for v := range strings.FieldsSeq(values) {
			g.see([]byte(v))
		}
		if got, _ := g.result(); got != want {
			t.Errorf("%q is %v, want %v", values, got, want)
		}
	}
}

// TestCSVErrors tests that every error says where it is and what to do.
func TestCSVErrors(t *testing.T) {
	rows := strings.Repeat("1,2\n", 100_000)
	for _, c := range []struct {
		name, text string
		o          Options
		line       int
		want       string
	}{
		{"empty", "", Options{}, 0, "empty"},
		{"ragged", "a,b\n1,2\n3\n", Options{}, 3, "has 1 fields, but the first line has 2"},
		{"ragged late", "a,b\n" + rows + "1,2,3\n", Options{}, 100_002, "has 3 fields"},
		{"late float", "a,b\n" + rows + "1,2.5\n", Options{}, 100_002, `column "b": "2.5" is no whole number (int64); give --type b=float64`},
		{"late text", "a,b\n" + rows + "1,x\n", Options{}, 100_002, `"x" is no number (int64); give --type b=string`},
		{"late large", "a,b\n" + rows + "1,9223372036854775808\n", Options{}, 100_002, `does not fit int64; give --type b=uint64`},
		{"too large", "a\n1\n-129384712938471298374\n", Options{Types: map[string]Type{"a": Int64}}, 3, `give --type a=string`},
		{"int32", "a\n1\n3000000000\n", Options{Types: map[string]Type{"a": Int32}}, 3, `does not fit int32; give --type a=int64`},
		{"negative", "a\n-1\n", Options{Types: map[string]Type{"a": Uint64}}, 2, `does not fit uint64; give --type a=int64`},
		{"float32", "a\n1e300\n", Options{Types: map[string]Type{"a": Float32}}, 2, `give --type a=float64`},
		{"open quote", "a\n1\n\"x\n", Options{}, 3, "never closed"},
		{"bare quote", "a\nx\"y\n", Options{}, 2, "quote inside"},
		{"after quote", "a\n\"x\"y\n", Options{}, 2, "followed by 'y'"},
		{"late quote", "a,b\n" + rows + "1,\"\n", Options{Types: map[string]Type{"a": String}}, 100_002, "never closed"},
		{"no column", "a,b\n", Options{Columns: []string{"c"}}, 0, `no column "c"; there are: a, b`},
		{"no type", "a,b\n", Options{Types: map[string]Type{"c": Int64}}, 0, `no column "c"`},
		{"twice", "a,a\n", Options{Columns: []string{"a"}}, 0, "two columns"},
		{"utf-16", "\xff\xfea\x00", Options{}, 0, "UTF-16"},
		{"comma", "a\n", Options{Comma: 'é'}, 0, "separated"},
		{"format", "a\n", Options{Format: "xls"}, 0, "there is no format"},
	} {
		_, err := readErr(tempFile(t, "x.csv", c.text), c.o)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Line != c.line || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(e.Path, "x.csv") {
			t.Errorf("%s: line %d: %v", c.name, e.Line, err)
		}
	}
}

// TestOpenErrors tests that what cannot be opened is an *Error too.
func TestOpenErrors(t *testing.T) {
	for path, want := range map[string]string{"no/such.csv": "cannot be opened", t.TempDir(): "directory", "-": "no standard input"} {
		var e *Error
		if _, err := Open(path, nil, Options{}); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// randomCSV returns text that is CSV, or nearly.
func randomCSV(r *rand.Rand) string {
	const common = "ab1,,\n\n\"\r;"
	var b strings.Builder
	for range r.IntN(40) {
		switch r.IntN(6) {
		case 0:
			b.WriteString("\"x,\"\"y\r\n\"")
		case 1:
			b.WriteString(",\"\"")
		case 2:
			b.WriteString("\r\n")
		default:
			b.WriteByte(common[r.IntN(len(common))])
		}
	}
	return b.String()
}

// split returns all records of a text, in one chunk.
func split(text string) (records [][]string, err error) {
	sp := splitter{comma: ',', data: []byte(text)}
	for {
		fields, err := sp.next()
		if err == io.EOF {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		var record []string
		for _, f := range fields {
			record = append(record, string(f))
		}
		records = append(records, record)
	}
}

// reference returns all records of a text as encoding/csv reads them.
func reference(text string) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	return r.ReadAll()
}

// same reports whether a reading agrees with that of encoding/csv, which turns
// \r\n in a quoted field into \n: the same records, or both an error.
func same(got [][]string, gotErr error, want [][]string, wantErr error) bool {
	if gotErr != nil || wantErr != nil {
		return gotErr != nil && wantErr != nil
	}
	return slices.EqualFunc(got, want, func(g, w []string) bool {
		return slices.EqualFunc(g, w, func(g, w string) bool { return strings.ReplaceAll(g, "\r\n", "\n") == w })
	})
}

// TestCSVKeepsBytes tests that a quoted field is read byte for byte: a key with
// a line end of Windows must stay apart from one with a line end of Unix.
func TestCSVKeepsBytes(t *testing.T) {
	r := seed.Rand(t)
	const common = "a\r\n\r\n\"\",\x00\xff"
	for range 2000 {
		var want [][]string
		var text strings.Builder
		for range 1 + r.IntN(5) {
			var field strings.Builder
			for range r.IntN(12) {
				field.WriteByte(common[r.IntN(len(common))])
			}
			want = append(want, []string{field.String(), "x"})
			text.WriteString(`"` + strings.ReplaceAll(field.String(), `"`, `""`) + "\",x\r\n")
		}
		got, err := splitChunks(text.String(), 1+r.IntN(20))
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q: %q %v, want %q", text.String(), got, err, want)
		}
	}
}

// TestSplitLikeEncodingCSV tests that the splitter reads what encoding/csv
// reads.
func TestSplitLikeEncodingCSV(t *testing.T) {
	r := seed.Rand(t)
	for range seed.Times(30_000, 200_000) {
		text := randomCSV(r)
		got, gotErr := split(text)
		want, wantErr := reference(text)
		if !same(got, gotErr, want, wantErr) {
			t.Fatalf("%q: %q %v, want %q %v", text, got, gotErr, want, wantErr)
		}
	}
}

// TestCutsLikeEncodingCSV tests that cutting text into small chunks changes
// nothing.
func TestCutsLikeEncodingCSV(t *testing.T) {
	r := seed.Rand(t)
	for range seed.Times(15_000, 50_000) {
		text := randomCSV(r)
		got, gotErr := splitChunks(text, 1+r.IntN(20))
		want, wantErr := reference(text)
		if !same(got, gotErr, want, wantErr) {
			t.Fatalf("%q: %q %v, want %q %v", text, got, gotErr, want, wantErr)
		}
	}
}

// splitChunks is split with chunks of about the given size.
func splitChunks(text string, size int) (records [][]string, err error) {
	c := &chunker{quotes: true}
	for at, buf := 0, []byte(nil); at < len(text) || len(buf) > 0; {
		end := min(at+size, len(text))
		buf = append(buf, text[at:end]...)
		at = end
		cut := c.cut(buf)
		if at == len(text) {
			cut = len(buf)
		}
		some, err := split(string(buf[:cut]))
		if err != nil {
			return nil, err
		}
		records = append(records, some...)
		buf = bytes.Clone(buf[cut:])
	}
	return records, nil
}

// TestCSVLarge tests that many chunks, with quotes across their borders,
// result in the same rows as encoding/csv, with any number of workers.
func TestCSVLarge(t *testing.T) {
	r := seed.Rand(t)
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "%d,\"%s\"\n", i, strings.Repeat("\r\n\"\",", r.IntN(8)))
	}
	want, err := reference(b.String())
	if err != nil {
		t.Fatal(err)
	}
	path := tempFile(t, "x.csv", b.String())
	for _, workers := range []int{1, 2, 5} {
		got := readAll(t, path, Options{Workers: workers})
		if got.Rows != len(want)-1 {
			t.Fatalf("%d rows, want %d", got.Rows, len(want)-1)
		}
		for i, record := range want[1:] {
			if fmt.Sprint(got.Columns[0].Int64[i]) != record[0] || strings.ReplaceAll(got.Columns[1].String[i], "\r\n", "\n") != record[1] {
				t.Fatalf("row %d: %d %q, want %q", i, got.Columns[0].Int64[i], got.Columns[1].String[i], record)
			}
		}
	}
}

// TestCSVLongRecord tests that a record may be longer than a chunk, but not
// endless.
func TestCSVLongRecord(t *testing.T) {
	long := strings.Repeat("x\n", chunkSize)
	b := readAll(t, tempFile(t, "x.csv", "a\n\""+long+"\"\ny\n"), Options{})
	if !slices.Equal(b.Columns[0].String, []string{long, "y"}) {
		t.Error("not what was written")
	}
	src, err := Open("-", io.MultiReader(strings.NewReader("a\n1\n\""), endless{}), Options{Types: map[string]Type{"a": String}})
	if err == nil {
		_, err = drain(src)
		src.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("%v", err)
	}
}

// endless is text that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
