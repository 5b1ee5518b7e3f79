package table

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestJSONTypes tests fields in any order, missing ones as nulls, and escapes.
func TestJSONTypes(t *testing.T) {
	const text = `{"id": 1, "name": "a\u00e9\n\"", "deep": {"x": [1, "}"]}, "ok": true, "f": 1.5}` + "\n\n" +
		`  {"name":null , "id" :18446744073709551615,"ok":"x","f":-2e3 }  ` + "\r\n" +
		`{"\u0069d":2, "name":7}`
	b := readAll(t, tempFile(t, "x.jsonl", text), Options{Columns: []string{"id", "name", "deep", "ok", "f"}})
	c := b.Columns
	if c[0].Type != Uint64 || !slices.Equal(c[0].Uint64, []uint64{1, 1<<64 - 1, 2}) {
		t.Errorf("id: %+v", c[0])
	}
	if !slices.Equal(c[1].String, []string{"aé\n\"", "", "7"}) || !slices.Equal(c[1].Null, []bool{false, true, false}) {
		t.Errorf("name: %+v", c[1])
	}
	if !slices.Equal(c[2].String, []string{`{"x": [1, "}"]}`, "", ""}) || !slices.Equal(c[3].String, []string{"true", "x", ""}) {
		t.Errorf("deep, ok: %+v", c[2:4])
	}
	if !slices.Equal(c[4].Float64, []float64{1.5, -2000, 0}) || !c[4].IsNull(2) || c[4].IsNull(1) {
		t.Errorf("f: %+v", c[4])
	}
}

// TestJSONQuotedNumbers tests numbers in strings, as 64-bit numbers are often
// written.
func TestJSONQuotedNumbers(t *testing.T) {
	path := tempFile(t, "x.ndjson", `{"id":"9007199254740993"}`+"\n"+`{"id":" 7 "}`+"\n"+`{"other":1}`)
	b := readAll(t, path, Options{Columns: []string{"id"}, Types: map[string]Type{"id": Int64}})
	if !slices.Equal(b.Columns[0].Int64, []int64{9007199254740993, 7, 0}) || !b.Columns[0].IsNull(2) {
		t.Errorf("%+v", b.Columns[0])
	}
}

// TestJSONErrors tests that every error says where it is and what to do.
func TestJSONErrors(t *testing.T) {
	many := strings.Repeat(`{"a":1}`+"\n", 50_000)
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{`{"a":1}` + "\n" + `{"a":`, 2, "is not JSON"},
		{"[1]", 1, "not a JSON object"},
		{"\n\n3", 3, "not a JSON object"},
		{many + `{"a":1.5}`, 50_001, `column "a": "1.5" is no whole number (int64); give --type a=float64`},
		{many + `{"a":"x"}`, 50_001, `give --type a=string`},
		{many + `{"a":true}`, 50_001, `"true" is no number`},
		{many + `{"a":1,"b":2}`, 50_001, `column "b": the first rows do not have this field`},
		{`{"a":1,"a":2}`, 1, "twice"},
	} {
		_, err := readErr(tempFile(t, "x.jsonl", c.text), Options{})
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v", c.text, err)
		}
	}
	_, err := readErr(tempFile(t, "x.jsonl", `{"a":1}`), Options{Columns: []string{"b"}})
	if err == nil || !strings.Contains(err.Error(), "there are: a") {
		t.Errorf("%v", err)
	}
	if b := readAll(t, tempFile(t, "x.jsonl", ""), Options{Columns: []string{"a"}}); b.Rows != 0 {
		t.Errorf("empty: %+v", b)
	}
}

// TestJSONPaths tests that fields of objects inside are columns by their paths, unless a
// field is called so itself.
func TestJSONPaths(t *testing.T) {
	path := tempFile(t, "t.jsonl", `{"id":1,"o":{"z":10,"s":"a","p":{"q":1.5}},"a.b":7,"a":{"b":8}}
{"o": {"p" : {"q" : 2}, "z":-3 , "z":4}, "id": 2}
{"id":3,"o":null}
{"id":4,"o":5}
{"id":5,"o":{"z":null,"p":[1]},"a.b":9}
`)
	b := readAll(t, path, Options{Columns: []string{"id", "o.z", "o.p.q", "o.s", "a.b"}})
	if got := typesOf(b); got != "id int64, o.z int64, o.p.q float64, o.s string, a.b int64" {
		t.Error(got)
	}
	for row, want := range []string{"1|10|1.5|a|7", "2|-3|2||", "3||||", "4||||", "5||||9"} {
		if got := rowText(b, row); got != want {
			t.Errorf("row %d: %s, want %s", row, got, want)
		}
	}
	for _, o := range []Options{{Columns: []string{"o.y"}}, {Columns: []string{"z"}}, {Columns: []string{"o."}}, {Pass: true, Probe: Field{Name: "o.y"}}} {
		if _, err := readErr(path, o); err == nil || !strings.Contains(err.Error(), "there is no column") {
			t.Errorf("%v: %v", o, err)
		}
	}
	for _, whole := range []bool{false, true} {
		src, err := Open(path, nil, Options{Pass: true, Whole: whole, Probe: Field{Name: "o.z", Type: Int64}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := drain(src)
		src.Close()
		if err != nil {
			t.Fatal(err)
		}
		keys := &b.Columns[len(b.Columns)-1]
		if len(keys.Int64) != 5 || keys.Int64[0] != 10 || keys.Int64[1] != -3 || !keys.IsNull(2) || !keys.IsNull(4) {
			t.Errorf("%+v", keys)
		}
		if names := typesOf(b); !whole && names != "id string, o string, a.b string, a string, o.z int64" {
			t.Error(names)
		}
	}
}

// TestProbeInside tests that a field inside an object that is only looked up is no column
// of the output, whatever types others have.
func TestProbeInside(t *testing.T) {
	path := tempFile(t, "x.jsonl", `{"id":1,"o":{"z":10}}`)
	for _, c := range []struct{ typed, want string }{{"", "id,o"}, {"id", "id,o"}, {"o.z", "id,o,o.z"}} {
		o := Options{Pass: true, Probe: Field{Name: "o.z", Type: Int64}}
		if c.typed != "" {
			o.Types = map[string]Type{c.typed: Int64}
		}
		src, err := Open(path, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range src.Schema()[:len(src.Schema())-1] {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, ","); got != c.want {
			t.Errorf("with a type of %q: %s, want %s", c.typed, got, c.want)
		}
		src.Close()
	}
}
