package pandoarrow

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/pando-index/pando"
)

// TestRange tests ranges of a frozen index and of a tree, in several batches.
func TestRange(t *testing.T) {
	const n = 2*rangeRows + 5
	keys, vals := make([]int64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i] = int64(i), fmt.Sprint("v", i)
	}
	frozen, err := pando.Freeze(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	tree, err := pando.TreeOf(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	moments := arrow.NewSchema([]arrow.Field{{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_s}, {Name: "name", Type: arrow.BinaryTypes.LargeString}}, nil)
	for _, ix := range []pando.Index[int64, string]{frozen, tree} {
		for _, schema := range []*arrow.Schema{nil, moments} {
			mem := checked(t)
			row, batches := int64(2), 0
			for batch, err := range Range(ix, 2, n-2, schema, mem) {
				if err != nil {
					t.Fatal(err)
				}
				if schema != nil && !batch.Schema().Equal(schema) {
					t.Fatal(batch.Schema())
				}
				k, _ := view[int64](batch.Column(0))
				for i := range k {
					if k[i] != row || batch.Column(1).ValueStr(i) != vals[row] {
						t.Fatalf("row %d: %d, %s", row, k[i], batch.Column(1).ValueStr(i))
					}
					row++
				}
				batches++
				batch.Release()
			}
			if row != n-1 || batches != 3 {
				t.Errorf("%d rows, %d batches", row, batches)
			}
			for batch := range Range(ix, 0, n, schema, mem) { // may be left early
				batch.Release()
				break
			}
			for range Range(ix, 9, 8, schema, mem) {
				t.Error("an empty range has a batch")
			}
		}
	}
	for _, wrong := range []*arrow.Schema{arrow.NewSchema(nil, nil), arrow.NewSchema(moments.Fields()[:1], nil),
		arrow.NewSchema([]arrow.Field{moments.Field(1), moments.Field(0)}, nil)} {
		rounds := 0
		for batch, err := range Range(frozen, 0, 9, wrong, nil) {
			if rounds++; !errors.Is(err, ErrType) || batch != nil {
				t.Errorf("%v: %v, %v", wrong, batch, err)
			}
		}
		if rounds != 1 {
			t.Errorf("%v: %d rounds", wrong, rounds)
		}
	}
}

// TestRangeBatch tests many ranges, some with null bounds, and keys alone.
func TestRangeBatch(t *testing.T) {
	mem := checked(t)
	p := arrow.PrimitiveTypes
	price := arrow.Field{Name: "price", Type: &arrow.Decimal128Type{Precision: 5, Scale: 1}}
	ix, err := pando.Freeze([]int64{1, 2, 3, 4}, []int64{10, 20, 30, 45})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	lo := makeArray(t, mem, p.Int64, []string{"2", "", "1", "9", "3"})
	defer lo.Release()
	hi := makeArray(t, mem, p.Int64, []string{"3", "4", "", "10", "9"})
	defer hi.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: p.Int64}, price}, nil)
	got, err := RangeBatch(ix, lo, hi, 0, schema, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if a, b, c := texts(got.Column(0)), texts(got.Column(1)), texts(got.Column(2)); a != "0 0 4 4" || b != "2 3 3 4" || c != "2 3 3 4.5" && c != "2.0 3.0 3.0 4.5" {
		t.Errorf("%s, %s, %s", a, b, c)
	}
	if name := got.ColumnName(0) + got.ColumnName(1) + got.ColumnName(2); name != "rangeidprice" {
		t.Error(name)
	}
	first, err := RangeBatch(ix, lo, hi, 1, nil, mem)
	if err != nil || texts(first.Column(2)) != "20 30" {
		t.Fatalf("%v, %v", first, err)
	}
	first.Release()
	none := makeArray(t, mem, p.Int64, nil)
	defer none.Release()
	if _, err := RangeBatch(ix, lo, none, 0, nil, mem); !errors.Is(err, pando.ErrLength) {
		t.Errorf("lengths: %v", err)
	}
	words := makeArray(t, mem, arrow.BinaryTypes.String, []string{"", "", "", "", ""})
	defer words.Release()
	if _, err := RangeBatch(ix, lo, words, 0, nil, mem); !errors.Is(err, ErrType) {
		t.Errorf("words: %v", err)
	}
	set, err := pando.Freeze[int64, struct{}]([]int64{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for batch, err := range Range(set, 0, 9, nil, mem) {
		if err != nil || batch.NumCols() != 1 || texts(batch.Column(0)) != "1 2" {
			t.Fatalf("%v, %v", batch, err)
		}
		batch.Release()
	}
}
