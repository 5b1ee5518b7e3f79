package pandoarrow_test

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoarrow"
)

func Example() {
	mem := memory.DefaultAllocator
	ids := array.NewInt64Builder(mem)
	ids.AppendValues([]int64{30, 10, 20}, nil)
	prices := array.NewFloat64Builder(mem)
	prices.AppendValues([]float64{3.5, 1.5, 2.5}, nil)

	ix, err := pandoarrow.Freeze[int64, float64](ids.NewArray(), prices.NewArray())
	if err != nil {
		panic(err)
	}
	defer ix.Close()

	asked := array.NewInt64Builder(mem)
	asked.AppendValues([]int64{20, 25, 0, 10}, []bool{true, true, false, true}) // the third is null
	found, hits, err := pandoarrow.Get(ix, asked.NewArray(), mem)
	if err != nil {
		panic(err)
	}
	defer found.Release()
	fmt.Println(found, hits)
	// Output: [2.5 (null) (null) 1.5] 2
}

func ExampleDigits() {
	mem := memory.DefaultAllocator
	cents := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 10, Scale: 2})
	names := array.NewStringBuilder(mem)
	for price, name := range map[string]string{"1.50": "tea", "2.00": "coffee"} {
		if err := cents.AppendValueFromString(price); err != nil {
			panic(err)
		}
		names.Append(name)
	}
	ix, err := pandoarrow.Freeze[int64, string](cents.NewArray(), names.NewArray())
	if err != nil {
		panic(err)
	}
	defer ix.Close()

	whole := array.NewInt64Builder(mem)
	whole.AppendValues([]int64{2, 150}, nil)
	keys, err := pandoarrow.Digits(whole.NewArray(), 2, mem) // 2 is 200 cents
	if err != nil {
		panic(err)
	}
	found, _, err := pandoarrow.Get(ix, keys, mem)
	if err != nil {
		panic(err)
	}
	fmt.Println(found)
	// Output: ["coffee" (null)]
}

func ExampleRange() {
	mem := memory.DefaultAllocator
	ix, err := pando.Freeze([]int32{18262, 18263, 18999}, []float64{1.5, 2.5, 3.5})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "day", Type: arrow.FixedWidthTypes.Date32},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	for batch, err := range pandoarrow.Range(ix, 18262, 18300, schema, mem) {
		if err != nil {
			panic(err)
		}
		fmt.Println(batch.Column(0), batch.Column(1))
		batch.Release()
	}
	// Output: [2020-01-01 2020-01-02] [1.5 2.5]
}
