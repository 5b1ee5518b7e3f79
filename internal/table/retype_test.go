package table

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table/cols"
)

// ofKind returns a column of numbers of a kind.
func ofKind(t *testing.T, name, kind string, texts ...string) Column {
	t.Helper()
	k, typ, err := ParseKind(kind)
	if err != nil {
		t.Fatal(err)
	}
	c := Column{Field: Field{Name: name, Type: typ, Kind: k}}
	for _, text := range texts {
		if !AppendText(&c, text) {
			t.Fatalf("%q is no %s", text, kind)
		}
	}
	return c
}

// tableOf writes columns to a file of a format.
func tableOf(t *testing.T, format string, columns ...Column) string {
	t.Helper()
	var schema []Field
	for _, c := range columns {
		schema = append(schema, c.Field)
	}
	return tempFile(t, "t."+format, string(write(t, format, schema, &Batch{Columns: columns, Rows: columns[0].Len()})))
}

// probed returns the column d of a file as it is looked up, and how many of its values
// are not of the type.
func probed(t *testing.T, path string, as Field) ([]string, int) {
	t.Helper()
	as.Name = "d"
	src, err := Open(path, nil, Options{Pass: true, Probe: as})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var b Batch
	if err := src.Next(&b); err != nil {
		t.Fatal(err)
	}
	c := &b.Columns[len(b.Columns)-1]
	var got []string
	for i := range c.Len() {
		if c.IsNull(i) {
			got = append(got, "-")
		} else {
			got = append(got, CellText(c, i))
		}
	}
	return got, b.Misfits
}

// dashes returns how many of the words of a text are a dash, which stands for a misfit.
func dashes(text string) (n int) {
	for _, word := range strings.Fields(text) {
		if word == "-" {
			n++
		}
	}
	return n
}

// TestDecimalsKeepTheirScale tests that a decimal that is read as another type, or is
// looked up among numbers, is the number that it is.
func TestDecimalsKeepTheirScale(t *testing.T) {
	for _, format := range []string{"parquet", "arrow"} {
		path := tableOf(t, format, ofKind(t, "d", "decimal[2]", "1.00", "0.50", "-7.00", "2147483648.00"))
		for typ, want := range map[Type]string{
			Int64: "1 - -7 2147483648", Int32: "1 - -7 -", Uint64: "1 - - 2147483648", Uint32: "1 - - 2147483648",
			Float64: "1 0.5 -7 2.147483648e+09", Float32: "1 0.5 -7 2.1474836e+09", String: "1.00 0.50 -7.00 2147483648.00",
		} {
			got, misfits := probed(t, path, Field{Type: typ})
			if s := strings.Join(got, " "); s != want || misfits != dashes(want) {
				t.Errorf("%s looked up as %v: %s, %d misfits, want %s", format, typ, s, misfits, want)
			}
			b, err := readErr(path, Options{Types: map[string]Type{"d": typ}})
			switch fits := dashes(want) == 0; {
			case fits && err != nil:
				t.Errorf("%s as %v: %v", format, typ, err)
			case fits && rowText(b, 1) != strings.Fields(want)[1]:
				t.Errorf("%s as %v: %s", format, typ, rowText(b, 1))
			case !fits && err == nil:
				t.Errorf("%s as %v: no error", format, typ)
			case !fits && !strings.Contains(err.Error(), `t.`+format+`:2: column "d": "0.50" is no whole number`):
				t.Errorf("%s as %v: %v", format, typ, err)
			}
		}
	}
}

// TestEqualNumbersMatch tests that numbers, dates and booleans are found however they are
// written, and that what is none is counted.
func TestEqualNumbersMatch(t *testing.T) {
	day, _, _ := ParseKind("date")
	cents, _, _ := ParseKind("decimal[2]")
	for _, c := range []struct {
		as   Field
		text string // as in CSV
		want string
	}{
		{Field{Type: Int64}, "1003.0 1.003e3 1003 +1003 100300e-2 1003.5 x -0.0 9223372036854775808 1e400 1e-400", "1003 1003 1003 1003 1003 - - 0 - - -"},
		{Field{Type: Uint64}, "18446744073709551615.000 1.8446744073709551615E19 -1 -1.0 1.e1 .e1", "18446744073709551615 18446744073709551615 - - 10 -"},
		{Field{Type: Int32}, "2147483647.0 2147483648.0 e1 1e 1e1.5 1.2.3", "2147483647 - - - - -"},
		{Field{Type: Uint32}, "4294967295e0 4294967296e0 00000000000000000000000.70e1", "4294967295 - 7"},
		{Field{Type: Int32, Kind: day}, "1900-1-2 1900-01-02 1900-13-2 1900", "1900-01-02 1900-01-02 - -"},
		{Field{Type: Int64, Kind: cents}, "1.5 15e-1 1.005 1.500 +1.5 1e2", "1.50 1.50 - 1.50 1.50 100.00"},
		{Field{Type: Int32, Kind: cents}, "21474836.47 21474836.48", "21474836.47 -"},
		{Field{Type: String, Kind: cols.Kind{Of: cols.Boolean}}, "True FALSE true 1 yes", "true false true - -"},
	} {
		fields := strings.Fields(c.text)
		misfits := dashes(c.want)
		json := strings.Join(fields, "\"}\n{\"d\":\"")
		for path, content := range map[string]string{"t.csv": "d,x\n" + strings.Join(fields, ",\n") + ",\n", "t.jsonl": `{"d":"` + json + `"}`} {
			got, n := probed(t, tempFile(t, path, content), c.as)
			if s := strings.Join(got, " "); s != c.want || n != misfits {
				t.Errorf("%s as %v %v: %s, %d misfits, want %s", path, c.as.Type, c.as.Kind, s, n, c.want)
			}
		}
	}
}

// TestScaled compares numbers in random notations with those of package big.
func TestScaled(t *testing.T) {
	r := seed.Rand(t)
	for range 20_000 {
		var b []byte
		for range 1 + r.IntN(26) {
			b = append(b, "0123456789000"[r.IntN(13)])
		}
		if r.IntN(2) > 0 {
			b = slices.Insert(b, r.IntN(len(b)+1), '.')
		}
		if r.IntN(2) > 0 {
			b = append(append(b, "eE"[r.IntN(2)]), []string{"0", "1", "-1", "+5", "-7", "-20", "20"}[r.IntN(7)]...)
		}
		if r.IntN(3) > 0 {
			b = append([]byte{"+-"[r.IntN(2)]}, b...)
		}
		scale := r.IntN(19)
		exact, ok := new(big.Rat).SetString(string(b))
		if !ok {
			t.Fatalf("%s is no number to package big", b)
		}
		ten := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		exact.Mul(exact, ten)
		negative, v, p := scaled(b, scale)
		most := new(big.Rat).SetInt(new(big.Int).SetUint64(math.MaxUint64))
		want := fine
		if !exact.IsInt() {
			want = syntax
		} else if new(big.Rat).Abs(exact).Cmp(most) > 0 {
			want = size
		}
		got := new(big.Int).SetUint64(v)
		if negative {
			got.Neg(got)
		}
		// What has too many digits both behind and before the point is either.
		if p != want && !(want == syntax && p == size) || want == fine && got.Cmp(exact.Num()) != 0 {
			t.Fatalf("%s of scale %d: %v, problem %d, want %v, problem %d", b, scale, got, p, exact, want)
		}
	}
}

// TestDatesAndMidnights tests that a date is found among timestamps, and a timestamp that
// is midnight among dates.
func TestDatesAndMidnights(t *testing.T) {
	for _, format := range []string{"parquet", "arrow", "csv", "jsonl"} {
		for _, kind := range []string{"timestamp[us]", "timestamp[ms,utc]"} {
			moments := tableOf(t, format, ofKind(t, "d", kind, "2020-01-31", "1969-12-30T00:00:00Z", "2020-01-31T00:00:01", "2020-01-31T12:00"))
			day, typ, _ := ParseKind("date")
			got, misfits := probed(t, moments, Field{Type: typ, Kind: day})
			if s := strings.Join(got, " "); s != "2020-01-31 1969-12-30 - -" || misfits != 2 {
				t.Errorf("%s in %s, as dates: %s, %d misfits", kind, format, s, misfits)
			}
			days := tableOf(t, format, ofKind(t, "d", "date", "2020-01-31", "1969-12-30"))
			moment, typ, _ := ParseKind(kind)
			got, misfits = probed(t, days, Field{Type: typ, Kind: moment})
			if s := strings.ReplaceAll(strings.Join(got, " "), "Z", ""); s != "2020-01-31T00:00:00 1969-12-30T00:00:00" || misfits != 0 {
				t.Errorf("dates in %s, as %s: %s, %d misfits", format, kind, s, misfits)
			}
		}
	}
}
