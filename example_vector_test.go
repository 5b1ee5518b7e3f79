package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

// turnover is an index of what was sold on days, by their number.
func turnover() *pando.Frozen[int, float64] {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	f, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	return f
}

func ExampleAggregate() {
	f := turnover()
	defer f.Close()
	s := pando.Aggregate(f, 2, 5)
	fmt.Println(s.Count, s.Sum, s.Min, s.Max, s.Mean)
	first, _, _ := f.Min()
	last, _, _ := f.Max()
	fmt.Println(pando.Aggregate(f, first, last).Sum) // of all
	// Output:
	// 4 73.5 9 40 18.375
	// 95
}

func ExampleAggregateBatch() {
	f := turnover()
	defer f.Close()
	sums := make([]pando.Summary[float64], 2)
	pando.AggregateBatch(f, []int{1, 4}, []int{3, 6}, sums)
	fmt.Println(sums[0].Sum, sums[1].Sum)
	// Output: 31.5 63.5
}

func ExampleHistogram() {
	f := turnover()
	defer f.Close()
	bounds := []float64{10, 12, 20}
	counts := make([]int, len(bounds)+1)
	pando.Histogram(f, 1, 6, bounds, counts)
	fmt.Println("below 10, below 12, below 20, more:", counts)
	// Output: below 10, below 12, below 20, more: [1 2 2 1]
}

func ExampleSelect() {
	f := turnover()
	defer f.Close()
	days, sums := pando.Select(f, 1, 6, pando.Above(12.0)).At(0)
	fmt.Println(days, sums)
	days, _ = pando.Select(f, 1, 6, pando.Between(9.0, 10.0)).At(0)
	fmt.Println(days)
	// Output:
	// [2 4] [12.5 40]
	// [1 3]
}

func ExampleTransform() {
	prices, err := pando.TreeOf([]int{1, 2, 3, 4}, []float64{10, 20, 30, 4000})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	n, err := pando.Transform(prices, 2, 4, pando.Multiply(1.5)) // others may read and write meanwhile
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "prices raised")
	if _, err := pando.Transform(prices, 1, 4, pando.Clamp(15.0, 100)); err != nil {
		log.Fatal(err)
	}
	for article, price := range prices.All() {
		fmt.Println(article, price)
	}
	// Output:
	// 3 prices raised
	// 1 15
	// 2 30
	// 3 45
	// 4 100
}
