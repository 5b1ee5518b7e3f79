package pandoarrow_test

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

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
