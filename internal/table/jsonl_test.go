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
