package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

func ExampleFreezeBytes() {
	ix, err := pando.FreezeBytes([][]byte{[]byte("b"), []byte("a")}, []int{2, 1})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	fmt.Println(ix.GetBytes([]byte("a")))
	fmt.Println(ix.HasBytes([]byte("x")), ix.RankBytes([]byte("b")))
	// Output:
	// 1 true
	// false 1
}

// A key that is a slice of bytes is looked up without a string made of it.
func ExampleFrozen_GetBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	line := []byte("birch,elm")
	v, ok := ix.GetBytes(line[:5])
	fmt.Println(v, ok)
	// Output: 2 true
}

func ExampleFrozen_HasBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	fmt.Println(ix.HasBytes([]byte("elm")), ix.HasBytes([]byte("oak")))
	// Output: true false
}

func ExampleFrozen_RankBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	fmt.Println(ix.RankBytes([]byte("cedar")))
	// Output: 2
}

// Keys lie one behind the other, and offsets say where each begins, as Arrow has
// strings.
func ExampleFrozen_GetBatchBytes() {
	ix, err := pando.Freeze([]string{"apple", "banana", "cherry"}, []int{3, 5, 7})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	data, offsets := []byte("cherryplumapple"), []int32{0, 6, 10, 15}
	vals, found := make([]int, 3), make([]bool, 3)
	hits := ix.GetBatchBytes(data, offsets, vals, found)
	fmt.Println(hits, vals, found)
	// Output: 2 [7 0 3] [true false true]
}

// A key that is a slice of bytes is looked up without a string made of it.
func ExampleTree_GetBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	line := []byte("GET /news HTTP/1.1")
	n, ok := visits.GetBytes(line[4:9])
	fmt.Println(n, ok)
	// Output: 3 true
}

func ExampleTree_HasBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	line := []byte("GET /news HTTP/1.1")
	fmt.Println(visits.HasBytes(line[4:9]))
	// Output: true
}

func ExampleTree_RankBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	fmt.Println(visits.RankBytes([]byte("/news")))
	// Output: 2
}

func ExampleTree_SetBytes() {
	visits, err := pando.NewTree[string, int]()
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	line := []byte("GET /about HTTP/1.1")
	if err := visits.SetBytes(line[4:10], 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(visits.Get("/about"))
	// Output: 1 true
}

// Keys lie one behind the other, and offsets say where each begins, as Arrow has
// strings.
func ExampleTree_GetBatchBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	data, offsets := []byte("/news/books/about"), []int32{0, 5, 11, 17}
	vals, found := make([]int, 3), make([]bool, 3)
	hits := visits.GetBatchBytes(data, offsets, vals, found)
	fmt.Println(hits, vals, found)
	// Output: 2 [3 1 0] [true true false]
}

func ExampleTree_SwapBytes() {
	visits, err := pando.TreeOf([]string{"/books"}, []int{1})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	line := []byte("GET /books HTTP/1.1")
	fmt.Println(visits.SwapBytes(line[4:10], 7))
	// Output: 1 true <nil>
}

func ExampleTree_UpdateBytes() {
	visits, err := pando.NewTree[string, int]()
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	for range 3 {
		line := []byte("GET /about HTTP/1.1")
		err := visits.UpdateBytes(line[4:10], func(n int, _ bool) (int, bool) { return n + 1, true })
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(visits.Get("/about"))
	// Output: 3 true
}

func ExampleTree_DeleteBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/news"}, []int{1, 2})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	fmt.Println(visits.DeleteBytes([]byte("/news")))
	fmt.Println(visits.Len())
	// Output:
	// 2 true
	// 1
}

// Keys lie one behind the other, and offsets say where each begins, as Arrow has
// strings.
func ExampleTree_SetBatchBytes() {
	visits, err := pando.NewTree[string, int]()
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	data, offsets := []byte("/news/books"), []int32{0, 5, 11}
	if err := visits.SetBatchBytes(data, offsets, []int{3, 1}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(visits.Get("/books"))
	// Output: 1 true
}

func ExampleTree_DeleteBatchBytes() {
	visits, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer visits.Close()

	data, offsets := []byte("/news/about"), []int32{0, 5, 11}
	found := make([]bool, 2)
	fmt.Println(visits.DeleteBatchBytes(data, offsets, found), found)
	// Output: 1 [true false]
}
