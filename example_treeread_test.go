package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

func ExampleTree_Min() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces, ok := stock.Min()
	fmt.Println(article, pieces, ok)
	// Output: 1001 12 true
}

func ExampleTree_Max() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces, ok := stock.Max()
	fmt.Println(article, pieces, ok)
	// Output: 4711 5 true
}

// The last entry up to a key.
func ExampleTree_Floor() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces, ok := stock.Floor(4000)
	fmt.Println(article, pieces, ok)
	// Output: 3000 0 true
}

// The first entry from a key on.
func ExampleTree_Ceil() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces, ok := stock.Ceil(4000)
	fmt.Println(article, pieces, ok)
	// Output: 4711 5 true
}

// Rank counts the keys below one.
func ExampleTree_Rank() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	fmt.Println(stock.Rank(3000), stock.Rank(9999))
	// Output: 1 3
}

// The median is the entry in the middle.
func ExampleTree_At() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces := stock.At(stock.Len() / 2)
	fmt.Println(article, pieces)
	// Output: 3000 0
}

// Both ends are counted.
func ExampleTree_Count() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	fmt.Println(stock.Count(1000, 3999))
	// Output: 2
}

// A tree may be changed while it is read.
func ExampleTree_All() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for article, pieces := range stock.All() {
		if pieces == 0 {
			stock.Delete(article)
		}
	}
	fmt.Println(stock.Len())
	// Output: 2
}

func ExampleTree_Backward() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for article, pieces := range stock.Backward() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 4711 5
	// 3000 0
	// 1001 12
}

// Both ends belong to a range.
func ExampleTree_Range() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for article, pieces := range stock.Range(1001, 3000) {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 3000 0
}

// The articles behind 1001, last first.
func ExampleTree_Scan() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for article, pieces := range stock.Scan(pando.After(1001), pando.Reverse()) {
		fmt.Println(article, pieces)
	}
	// Output:
	// 4711 5
	// 3000 0
}

// A cursor of a tree sees what others change.
func ExampleTree_Cursor() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	c := stock.Cursor()
	c.Seek(2000)
	fmt.Println(c.Key())
	if err := stock.Set(3500, 1); err != nil {
		log.Fatal(err)
	}
	c.Next()
	fmt.Println(c.Key())
	// Output:
	// 3000
	// 3500
}

// Delete at a cursor, which goes on behind the key. Where others write, too, Update
// can look at the value once more before it deletes.
func ExampleTree_Cursor_delete() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	c := stock.Cursor()
	for ok := c.First(); ok; ok = c.Next() {
		if c.Value() == 0 {
			stock.Delete(c.Key())
		}
	}
	for article, pieces := range stock.All() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 4711 5
}

func ExampleTree_Prefix() {
	paths := []string{"/books", "/books/go", "/books/c", "/news"}
	visits, err := pando.TreeOf(paths, []int{40, 5, 3, 20})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	for path, n := range visits.Prefix("/books/") {
		fmt.Println(path, n)
	}
	// Output:
	// /books/c 3
	// /books/go 5
}

func ExampleTree_PrefixCount() {
	paths := []string{"/books", "/books/go", "/books/c", "/news"}
	visits, err := pando.TreeOf(paths, []int{40, 5, 3, 20})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	fmt.Println(visits.PrefixCount("/books"), visits.PrefixCount("/books/"))
	// Output: 3 2
}
