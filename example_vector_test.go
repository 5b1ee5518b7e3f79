package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

// What was sold from day 2 to day 5.
func ExampleAggregate() {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	sales, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	defer sales.Close()

	s := pando.Aggregate(sales, 2, 5)
	fmt.Println(s.Count, s.Sum, s.Min, s.Max, s.Mean)
	// Output: 4 73.5 9 40 18.375
}

// All entries, from the first key to the last.
func ExampleAggregate_all() {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	sales, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	defer sales.Close()

	if first, _, ok := sales.Min(); ok {
		last, _, _ := sales.Max()
		fmt.Println(pando.Aggregate(sales, first, last).Sum)
	}
	// Output: 95
}

func ExampleAggregateBatch() {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	sales, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	defer sales.Close()

	halves := make([]pando.Summary[float64], 2)
	pando.AggregateBatch(sales, []int{1, 4}, []int{3, 6}, halves)
	fmt.Println(halves[0].Sum, halves[1].Sum)
	// Output: 31.5 63.5
}

func ExampleHistogram() {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	sales, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	defer sales.Close()

	bounds := []float64{10, 12, 20}
	counts := make([]int, len(bounds)+1)
	pando.Histogram(sales, 1, 6, bounds, counts)
	fmt.Println("below 10, below 12, below 20, more:", counts)
	// Output: below 10, below 12, below 20, more: [1 2 2 1]
}

func ExampleSelect() {
	days, sums := []int{1, 2, 3, 4, 5, 6}, []float64{10, 12.5, 9, 40, 12, 11.5}
	sales, err := pando.Freeze(days, sums)
	if err != nil {
		log.Fatal(err)
	}
	defer sales.Close()

	days, sums = pando.Select(sales, 1, 6, pando.Above(12.0)).At(0)
	fmt.Println(days, sums)
	days, _ = pando.Select(sales, 1, 6, pando.Between(9.0, 10.0)).At(0)
	fmt.Println(days)
	// Output:
	// [2 4] [12.5 40]
	// [1 3]
}

// Others may read and write meanwhile.
func ExampleTransform() {
	prices, err := pando.TreeOf([]int{1, 2, 3, 4}, []float64{10, 20, 30, 4000})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	n, err := pando.Transform(prices, 2, 4, pando.Multiply(1.5))
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
