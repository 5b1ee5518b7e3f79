package pandoarrow

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestDecimals tests that decimals are keys and values, are asked for by Digits, and come
// back as decimals; and that they are never taken for whole numbers.
func TestDecimals(t *testing.T) {
	for _, dt := range []arrow.DataType{
		&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 2},
		&arrow.Decimal128Type{Precision: 10, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 40, Scale: 2},
	} {
		t.Run(dt.String(), func(t *testing.T) {
			mem := checked(t)
			prices := makeArray(t, mem, dt, []string{"1.50", "-0.05", "1.00"})
			defer prices.Release()
			ix, err := Freeze[int64, int64](prices, prices)
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Close()
			if v, ok := ix.Get(-5); !ok || v != -5 {
				t.Fatalf("%d, %v", v, ok)
			}
			if _, _, err := Get(ix, prices, mem); !errors.Is(err, ErrType) {
				t.Fatalf("decimals looked up as numbers: %v", err)
			}
			if _, err := Rank(ix, prices, mem); !errors.Is(err, ErrType) {
				t.Fatalf("decimals ranked as numbers: %v", err)
			}
			asked := makeArray(t, mem, &arrow.Decimal128Type{Precision: 20, Scale: 3}, []string{"1.500", "1.505", "", "9.000", "-0.050"})
			defer asked.Release()
			keys, err := Digits(asked, 2, mem)
			if err != nil {
				t.Fatal(err)
			}
			defer keys.Release()
			if s := texts(keys); s != "150 null null 900 -5" {
				t.Fatalf("digits %s", s)
			}
			got, hits, err := GetAs(ix, keys, dt, mem)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Release()
			if s := texts(got); hits != 2 || s != "1.50 null null null -0.05" && s != "1.5 null null null -0.05" {
				t.Errorf("%d hits: %s", hits, s)
			}
		})
	}
}

// TestDigits tests numbers of all kinds, and those that 64 bits do not hold.
func TestDigits(t *testing.T) {
	mem := checked(t)
	p := arrow.PrimitiveTypes
	for _, c := range []struct {
		t     arrow.DataType
		from  []string
		scale int32
		want  string
	}{
		{p.Int64, []string{"5", "9223372036854775807", "-3"}, 0, "5 9223372036854775807 -3"},
		{p.Int64, []string{"5", "9223372036854775807", "-3"}, 2, "500 null -300"},
		{p.Uint64, []string{"5", "18446744073709551615"}, 0, "5 null"},
		{p.Int8, []string{"-128"}, 3, "-128000"},
		{&arrow.Decimal128Type{Precision: 38, Scale: 0}, []string{"99999999999999999999", "7"}, 0, "null 7"},
		{&arrow.Decimal128Type{Precision: 38, Scale: 4}, []string{"1.2300", "1.2345", "900000000000000000.0000"}, 2, "123 null null"},
		{&arrow.Decimal128Type{Precision: 38, Scale: 4}, []string{"90000000000000000.0000"}, 2, "9000000000000000000"},
	} {
		a := makeArray(t, mem, c.t, c.from)
		got, err := Digits(a, c.scale, mem)
		a.Release()
		if err != nil {
			t.Fatal(err)
		}
		if s := texts(got); s != c.want {
			t.Errorf("%v %v of scale %d: %s, want %s", c.t, c.from, c.scale, s, c.want)
		}
		got.Release()
	}
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.String, p.Float64, arrow.FixedWidthTypes.Date32} {
		a := makeArray(t, mem, dt, nil)
		if _, err := Digits(a, 0, mem); !errors.Is(err, ErrType) {
			t.Errorf("%v: %v", dt, err)
		}
		a.Release()
	}
}

// TestDecimalErrors tests decimals that do not fit.
func TestDecimalErrors(t *testing.T) {
	mem := checked(t)
	wide := makeArray(t, mem, &arrow.Decimal128Type{Precision: 38, Scale: 2}, []string{"99999999999999999999.00"})
	defer wide.Release()
	if _, err := Freeze[int64, struct{}](wide, nil); !errors.Is(err, ErrType) {
		t.Errorf("a wide one: %v", err)
	}
	narrow := makeArray(t, mem, arrow.PrimitiveTypes.Int32, []string{"1"})
	defer narrow.Release()
	if _, err := Freeze[int32, int32](wide, narrow); !errors.Is(err, ErrType) {
		t.Errorf("int32: %v", err)
	}
	unsigned := makeArray(t, mem, arrow.PrimitiveTypes.Uint64, []string{"1"})
	defer unsigned.Release()
	if _, err := Freeze[uint64, uint64](wide, unsigned); !errors.Is(err, ErrType) {
		t.Errorf("uint64: %v", err)
	}
	short := makeArray(t, mem, &arrow.Decimal128Type{Precision: 9, Scale: 2}, []string{"12345.67"})
	defer short.Release()
	ix, err := Freeze[int32, int32](short, short)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	keys := makeArray(t, mem, arrow.PrimitiveTypes.Int32, []string{"1234567"})
	defer keys.Release()
	if _, _, err := GetAs(ix, keys, &arrow.Decimal128Type{Precision: 4, Scale: 2}, mem); !errors.Is(err, ErrType) {
		t.Errorf("too few digits: %v", err)
	}
	got, _, err := GetAs(ix, keys, &arrow.Decimal128Type{Precision: 9, Scale: 2}, mem)
	if err != nil || texts(got) != "12345.67" {
		t.Fatalf("%v, %v", got, err)
	}
	got.Release()
}
