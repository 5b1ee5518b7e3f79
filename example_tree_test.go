package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

func ExampleNewTree() {
	stock, err := pando.NewTree[uint32, int]()
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if err := stock.Set(4711, 5); err != nil {
		log.Fatal(err)
	}
	if err := stock.Set(1001, 12); err != nil {
		log.Fatal(err)
	}
	for article, pieces := range stock.All() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 4711 5
}

// Keys need not be sorted, and of equal ones the last wins.
func ExampleTreeOf() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000, 4711}, []int{5, 12, 0, 6})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for article, pieces := range stock.All() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 3000 0
	// 4711 6
}

func ExampleTree_Set() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if err := stock.Set(1001, 11); err != nil { // changes it
		log.Fatal(err)
	}
	if err := stock.Set(2000, 3); err != nil { // adds it
		log.Fatal(err)
	}
	pieces, ok := stock.Get(1001)
	fmt.Println(pieces, ok, stock.Len())
	// Output: 11 true 4
}

func ExampleTree_Get() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	pieces, ok := stock.Get(1001)
	fmt.Println(pieces, ok)
	pieces, ok = stock.Get(1002)
	fmt.Println(pieces, ok)
	// Output:
	// 12 true
	// 0 false
}

func ExampleTree_Has() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	fmt.Println(stock.Has(3000), stock.Has(3001)) // 3000 is there, though none are left
	// Output: true false
}

func ExampleTree_Len() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	stock.Delete(3000)
	fmt.Println(stock.Len())
	// Output: 2
}

func ExampleTree_Swap() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	before, had, err := stock.Swap(4711, 8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before, had)
	// Output: 5 true
}

// Take one piece, and the article out of the tree with the last.
func ExampleTree_Update() {
	stock, err := pando.TreeOf([]uint32{4711, 1001}, []int{2, 12})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for range 2 {
		err := stock.Update(4711, func(pieces int, had bool) (int, bool) {
			return pieces - 1, had && pieces > 1
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(stock.Get(4711))
	}
	// Output:
	// 1 true
	// 0 false
}

// Get or set: the value that the key has, or else a new one. The function may run
// more than once; what its last run has set holds.
func ExampleTree_Update_getOrSet() {
	ids, err := pando.TreeOf([]string{"ash", "birch"}, []int{1, 2})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()

	for _, name := range []string{"birch", "elm"} {
		var id int
		var was bool
		err := ids.Update(name, func(old int, had bool) (int, bool) {
			if id, was = old, had; !had {
				id = 3
			}
			return id, true
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, id, was)
	}
	// Output:
	// birch 2 true
	// elm 3 false
}

// Compare and swap: a new value only in place of the one expected. The function may
// run more than once; what its last run has set holds.
func ExampleTree_Update_compareAndSwap() {
	stock, err := pando.TreeOf([]uint32{4711, 1001}, []int{5, 12})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for range 2 {
		var swapped bool
		err := stock.Update(4711, func(old int, had bool) (int, bool) {
			if swapped = had && old == 5; swapped {
				return 4, true
			}
			return old, had // as it was
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(swapped)
	}
	// Output:
	// true
	// false
}

func ExampleTree_Delete() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	pieces, had := stock.Delete(1001)
	fmt.Println(pieces, had)
	pieces, had = stock.Delete(1001)
	fmt.Println(pieces, had)
	// Output:
	// 12 true
	// 0 false
}

// Both ends belong to the range.
func ExampleTree_DeleteRange() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	deleted := stock.DeleteRange(1001, 3000)
	fmt.Println(deleted, "deleted,", stock.Len(), "left")
	// Output: 2 deleted, 1 left
}

// From the least key to the greatest it clears the tree.
func ExampleTree_DeleteRange_clear() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if least, _, ok := stock.Min(); ok {
		greatest, _, _ := stock.Max()
		fmt.Println(stock.DeleteRange(least, greatest), "deleted")
	}
	fmt.Println(stock.Len(), "left")
	// Output:
	// 3 deleted
	// 0 left
}

// A queue by priority: the least is taken out first.
func ExampleTree_PopMin() {
	jobs, err := pando.TreeOf([]int64{30, 10, 20}, []string{"sweep", "wash", "dry"})
	if err != nil {
		log.Fatal(err)
	}
	defer jobs.Close()

	for priority, job, ok := jobs.PopMin(); ok; priority, job, ok = jobs.PopMin() {
		fmt.Println(priority, job)
	}
	// Output:
	// 10 wash
	// 20 dry
	// 30 sweep
}

func ExampleTree_PopMax() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	article, pieces, ok := stock.PopMax()
	fmt.Println(article, pieces, ok)
	// Output: 4711 5 true
}
