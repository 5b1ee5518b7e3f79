package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

// Entries come in key order, equal keys in the order they were given.
func ExampleFrozen_All() {
	readings, err := pando.Freeze([]int64{160, 100, 160}, []string{"18.4°", "18.2°", "18.5°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	for second, reading := range readings.All() {
		fmt.Println(second, reading)
	}
	// Output:
	// 100 18.2°
	// 160 18.4°
	// 160 18.5°
}

// The latest reading above 18.4.
func ExampleFrozen_Backward() {
	readings, err := pando.Freeze([]int{100, 160, 220, 280}, []float64{18.2, 18.6, 18.5, 18.3})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	for second, reading := range readings.Backward() {
		if reading > 18.4 {
			fmt.Println(second, reading)
			break
		}
	}
	// Output: 220 18.5
}

// Both ends belong to a range.
func ExampleFrozen_Range() {
	seconds := []int64{100, 160, 160, 220, 280}
	readings, err := pando.Freeze(seconds, []string{"18.2°", "18.4°", "18.5°", "18.9°", "18.7°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	for second, reading := range readings.Range(160, 220) {
		fmt.Println(second, reading)
	}
	// Output:
	// 160 18.4°
	// 160 18.5°
	// 220 18.9°
}

// The cheapest way to ask for many ranges: here the first two articles of each
// group.
func ExampleFrozen_RangeBatch() {
	ix, err := pando.Freeze([]uint32{4711, 1001, 3000, 1002, 2500}, []float32{19.90, 3.50, 7.25, 3.95, 12})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	from := []uint32{1000, 2000, 5000}
	to := []uint32{1999, 4999, 5999}
	groups := ix.RangeBatch(from, to, 2)
	for i := range groups.Len() {
		articles, prices := groups.At(i)
		fmt.Println(from[i], articles, prices)
	}
	// Output:
	// 1000 [1001 1002] [3.5 3.95]
	// 2000 [2500 3000] [12 7.25]
	// 5000 [] []
}

func ExampleRanges_At() {
	ix, err := pando.Freeze([]int{10, 20, 30}, []string{"a", "b", "c"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	r := ix.RangeBatch([]int{10, 25}, []int{20, 40}, 0)
	keys, vals := r.At(1) // of the second range
	fmt.Println(keys, vals)
	// Output: [30] [c]
}

func ExampleRanges_Len() {
	ix, err := pando.Freeze([]int{10, 20, 30}, []string{"a", "b", "c"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	fmt.Println(ix.RangeBatch([]int{10, 25}, []int{20, 40}, 0).Len())
	// Output: 2
}

// The readings before second 220, latest first, two of them.
func ExampleFrozen_Scan() {
	seconds := []int64{100, 160, 160, 220, 280}
	readings, err := pando.Freeze(seconds, []string{"18.2°", "18.4°", "18.5°", "18.9°", "18.7°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	for second, reading := range readings.Scan(pando.Before(220), pando.Reverse(), pando.Limit(2)) {
		fmt.Println(second, reading)
	}
	// Output:
	// 160 18.5°
	// 160 18.4°
}

// A page of results: what comes after the last one of the page before.
func ExampleHasPrefix() {
	words, err := pando.Freeze([]string{"car", "card", "care", "cart", "cat"}, []int{0, 1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	defer words.Close()

	for word := range words.Scan(pando.HasPrefix("car"), pando.After("card"), pando.Limit(2)) {
		fmt.Println(word)
	}
	// Output:
	// care
	// cart
}

func ExampleFrozen_Cursor() {
	readings, err := pando.Freeze([]int64{100, 160, 220, 280}, []string{"18.2°", "18.4°", "18.9°", "18.7°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	c := readings.Cursor()
	for ok := c.Seek(200); ok; ok = c.Next() {
		fmt.Println(c.Key(), c.Value())
	}
	c.Prev() // back from behind the end
	c.Prev()
	fmt.Println("before the last:", c.Key())
	// Output:
	// 220 18.9°
	// 280 18.7°
	// before the last: 220
}

func ExampleFrozen_Prefix() {
	paths := []string{"/", "/books", "/books/7", "/books/12", "/music", "/bookshop"}
	visits, err := pando.Freeze(paths, []int{90, 40, 3, 5, 20, 1})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	for path, n := range visits.Prefix("/books/") {
		fmt.Println(path, n)
	}
	// Output:
	// /books/12 5
	// /books/7 3
}

func ExampleFrozen_PrefixCount() {
	words, err := pando.Freeze[string, struct{}]([]string{"car", "card", "care", "cat", "dog"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer words.Close()

	fmt.Println(words.PrefixCount("car"), words.PrefixCount("c"), words.PrefixCount("x"), words.PrefixCount(""))
	// Output: 3 4 0 5
}
