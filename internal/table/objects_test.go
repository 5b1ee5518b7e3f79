package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/table/cols"
)

// TestPack tests that columns of every type and kind come back from the objects that
// were made of them, nulls and bytes that are no text among them.
func TestPack(t *testing.T) {
	null := []bool{false, true, false}
	columns := []Column{
		{Field: Field{Name: "i64", Type: Int64}, Int64: []int64{math.MinInt64, 0, math.MaxInt64}, Null: null},
		{Field: Field{Name: "u64", Type: Uint64}, Uint64: []uint64{1, 0, math.MaxUint64}},
		{Field: Field{Name: "i32", Type: Int32}, Int32: []int32{-1, 0, 1}},
		{Field: Field{Name: "u32", Type: Uint32}, Uint32: []uint32{1, 0, math.MaxUint32}},
		{Field: Field{Name: "f64", Type: Float64}, Float64: []float64{math.Inf(-1), 0, 0.1}},
		{Field: Field{Name: "f32", Type: Float32}, Float32: []float32{0.1, 0, -2}, Null: null},
		{Field: Field{Name: "text", Type: String}, String: []string{"a\"\n", "", `{"base64":"eA=="}`}, Null: null},
		{Field: Field{Name: "bytes", Type: String, Kind: Kind{Of: cols.Binary}}, String: []string{"\xff\x00", "", "plain"}, Null: null},
		{Field: Field{Name: "latin", Type: String}, String: []string{"caf\xe9", "", "{}"}},
		{Field: Field{Name: "day", Type: Int32, Kind: Kind{Of: cols.Date}}, Int32: []int32{-1, 0, 18292}},
		{Field: Field{Name: "at", Type: Int64, Kind: Kind{Of: cols.Timestamp, Unit: time.Nanosecond, UTC: true}}, Int64: []int64{-1, 0, 1}},
		{Field: Field{Name: "price", Type: Int64, Kind: Kind{Of: cols.Decimal, Scale: 2}}, Int64: []int64{-5, 0, 150}},
		{Field: Field{Name: "ok", Type: String, Kind: Kind{Of: cols.Boolean}}, String: []string{"true", "false", "true"}},
		{Field: Field{Name: "id", Type: String, Kind: Kind{Of: cols.UUID}}, String: []string{"0123456789abcdef", "", "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}, Null: null},
	}
	var schema []Field
	for _, c := range columns {
		schema = append(schema, c.Field)
	}
	objects := &Column{Field: Field{Type: String}, String: Pack(columns, 3)}
	got, err := Unpack(objects, schema)
	if err != nil {
		t.Fatal(err)
	}
	for i := range columns {
		a, b := &columns[i], &got[i]
		for row := range 3 {
			if a.IsNull(row) != b.IsNull(row) || !a.IsNull(row) && CellText(a, row) != CellText(b, row) {
				t.Errorf("%s in row %d: %+v, want %+v", a.Name, row, b, a)
			}
		}
		if a.Field != b.Field || a.Len() != b.Len() {
			t.Errorf("%+v, want %+v", b, a)
		}
	}
	objects.Null = []bool{true, true, false}
	if got, err = Unpack(objects, schema); err != nil || !got[0].IsNull(0) || got[0].IsNull(2) {
		t.Errorf("%v, %+v", err, got)
	}
	if !slices.ContainsFunc(objects.String, func(s string) bool { return strings.Contains(s, `"bytes":{"base64":"/wA="}`) }) {
		t.Error(fmt.Sprint(objects.String))
	}
	for _, bad := range []string{`{"other":1}`, `{"i64":"x"}`, `[]`, `{`, `{"text":{"x":""}}`, `{"i64":1,"i64":2}`} {
		if _, err := Unpack(&Column{Field: Field{Type: String}, String: []string{bad}}, schema); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
