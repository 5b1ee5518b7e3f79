package cols

import (
	"encoding/json"
	"testing"
)

// TestNulls: values and nulls in any order, also after a column was emptied,
// and values that were added after the last null.
func TestNulls(t *testing.T) {
	var c Column
	for typ := range Type(len(typeNames)) {
		c.Reset()
		c.SetType(typ)
		c.AppendNull()
		c.AppendNull()
		c.Reset()
		if c.Len() != 0 || c.Null != nil {
			t.Fatalf("%v: not empty: %+v", typ, c)
		}
		one := Column{Field: Field{Type: typ}}
		one.AppendNull()
		one.Int64, one.Uint64 = append(one.Int64, 1), append(one.Uint64, 1)
		one.Int32, one.Uint32 = append(one.Int32, 1), append(one.Uint32, 1)
		one.Float64, one.Float32 = append(one.Float64, 1), append(one.Float32, 1)
		one.String = append(one.String, "1")
		one.Seal()
		if n := one.Len(); n != 2 || len(one.Null) != n || !one.IsNull(0) || one.IsNull(1) {
			t.Errorf("%v: %+v", typ, one)
		}
	}
}

// TestTypeNames: a name gives its type back, also through JSON.
func TestTypeNames(t *testing.T) {
	for typ := range Type(len(typeNames)) {
		text, err := json.Marshal(Field{Name: "a", Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		var got Field
		if err := json.Unmarshal(text, &got); err != nil || got.Type != typ || got.Name != "a" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := ParseType("complex128"); err == nil {
		t.Error("complex128 is a type")
	}
}
