package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

// Many keys at once, which is many times faster than one by one.
func ExampleTree_SetBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	articles, pieces := []uint32{3000, 5000}, []int{1, 2}
	if err := stock.SetBatch(articles, pieces); err != nil {
		log.Fatal(err)
	}
	for article, pieces := range stock.All() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 3000 1
	// 4711 5
	// 5000 2
}

func ExampleTree_GetBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	basket := []uint32{4711, 1, 1001}
	pieces := make([]int, len(basket))
	found := make([]bool, len(basket))
	hits := stock.GetBatch(basket, pieces, found)
	fmt.Println(hits, pieces, found)
	// Output: 2 [5 0 12] [true false true]
}

func ExampleTree_DeleteBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	sold := []uint32{4711, 4712}
	found := make([]bool, len(sold))
	deleted := stock.DeleteBatch(sold, found)
	fmt.Println(deleted, found)
	// Output: 1 [true false]
}

// Operations of all kinds at once. Each reports what was there just before it.
func ExampleTree_Apply() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	ops := []pando.Op{pando.OpGet, pando.OpSet, pando.OpDelete}
	articles := []uint32{1001, 3000, 3000}
	pieces := []int{0, 7, 0} // what OpSet sets
	found := make([]bool, len(ops))
	if err := stock.Apply(ops, articles, pieces, found); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pieces, found)
	fmt.Println(stock.Has(3000))
	// Output:
	// [12 0 7] [true true true]
	// false
}

func ExampleTree_RankBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	ranks := make([]int, 3)
	stock.RankBatch([]uint32{0, 3000, 9999}, ranks)
	fmt.Println(ranks)
	// Output: [0 1 3]
}

func ExampleTree_CountBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	counts := make([]int, 2)
	stock.CountBatch([]uint32{0, 3000}, []uint32{2000, 9999}, counts)
	fmt.Println(counts)
	// Output: [1 2]
}

func ExampleTree_RangeBatch() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	r := stock.RangeBatch([]uint32{0, 3000}, []uint32{2000, 9999}, 10)
	for i := range r.Len() {
		articles, pieces := r.At(i)
		fmt.Println(articles, pieces)
	}
	// Output:
	// [1001] [12]
	// [3000 4711] [0 5]
}
