package table

import (
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/table/cols"
)

// TestTypedKeepsDigits tests that columns of CSV which are passed on get a type only
// where it keeps all digits, and that a row which would lose some after the first ones,
// which decide, is an error.
func TestTypedKeepsDigits(t *testing.T) {
	for _, c := range []struct {
		early, late string
		want        Type
		bad         bool
	}{
		{"12345678901234.5678", "1", String, false},
		{"9007199254740993.0", "1", String, false},
		{"1.5", "12345678901234.25", Float64, false},
		{"1.5", "12345678901234.5678", Float64, true},
		{"1.5", "9007199254740993", Float64, true},
		{"1.5", "007", Float64, true},
		{"1.5", "0.50", Float64, false},
		{"1.5", "100000000000000000000", Float64, false},
		{"12134", "02134", Int64, true},
		{"12134", " 02134 ", Int64, true},
		{"12134", "-02134", Int64, true},
		{"12134", "+49", Int64, true},
		{"12134", "0", Int64, false},
		{"12134", "-7", Int64, false},
		{"12134", "", Int64, false},
		{"18446744073709551615", "02134", Uint64, true},
	} {
		path := tempFile(t, "x.csv", "n,zip\n"+strings.Repeat("1,"+c.early+"\n", sampleRows)+"1,"+c.late+"\n")
		o := Options{Typed: true, Pass: true, Probe: Field{Name: "n", Type: Int64}}
		src, err := Open(path, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := src.Schema()[1].Type; got != c.want {
			t.Errorf("%s is %v, want %v", c.early, got, c.want)
		}
		src.Close()
		_, err = tryPass(t, path, "parquet", o)
		if c.bad != (err != nil) || err != nil && !strings.Contains(err.Error(), `x.csv:1002: column "zip": "`+c.late+`"`) ||
			err != nil && !strings.HasSuffix(err.Error(), "give --type zip=string") {
			t.Errorf("%q behind %s: %v", c.late, c.early, err)
		}
		for _, forced := range []Type{c.want, String} {
			o.Types = map[string]Type{"zip": forced}
			if _, err := tryPass(t, path, "parquet", o); err != nil {
				t.Errorf("%q as %v: %v", c.late, forced, err)
			}
		}
		o.Types, o.Exact = map[string]Type{"zip": c.want}, map[string]bool{"zip": true}
		if _, err := tryPass(t, path, "parquet", o); c.bad != (err != nil) {
			t.Errorf("%q of an exact column: %v", c.late, err)
		}
	}
}

// TestKindOfSpacedName tests that a column has its type and its kind whether or not they
// are given by a name with the spaces that it has in a header.
func TestKindOfSpacedName(t *testing.T) {
	path := tempFile(t, "x.csv", "n, day\n1,2020-01-31\n")
	for _, name := range []string{"day", " day"} {
		o := Options{Types: map[string]Type{name: Int32}, Kinds: map[string]Kind{name: {Of: cols.Date}}}
		if c := readAll(t, path, o).Columns[1]; c.Kind.Of != cols.Date || c.Int32[0] != 18292 {
			t.Errorf("%q: %+v", name, c)
		}
	}
}
