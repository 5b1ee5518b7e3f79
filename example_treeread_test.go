package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/pando-index/pando"
)

func ExampleTree_Set() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Set(1001, 11), t.Set(2000, 3))
	fmt.Println(t.Get(1001))
	fmt.Println(t.Len())
	// Output:
	// <nil> <nil>
	// 11 true
	// 4
}

func ExampleTree_Get() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Get(1001))
	fmt.Println(t.Get(1002))
	// Output:
	// 12 true
	// 0 false
}

func ExampleTree_Has() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Has(3000), t.Has(3001)) // 3000 is there, though none are left
	// Output: true false
}

func ExampleTree_Len() {
	t := stock()
	defer t.Close()
	t.Set(1, 1)
	fmt.Println(t.Len())
	// Output: 4
}

func ExampleTree_GetBatch() {
	t := stock()
	defer t.Close()
	pieces, found := make([]int, 3), make([]bool, 3)
	hits := t.GetBatch([]uint32{4711, 1, 1001}, pieces, found)
	fmt.Println(hits, pieces, found)
	// Output: 2 [5 0 12] [true false true]
}

func ExampleTree_DeleteBatch() {
	t := stock()
	defer t.Close()
	found := make([]bool, 2)
	fmt.Println(t.DeleteBatch([]uint32{4711, 4712}, found), found)
	// Output: 1 [true false]
}

func ExampleTree_PopMax() {
	t := stock()
	defer t.Close()
	for t.Len() > 1 {
		fmt.Println(t.PopMax())
	}
	// Output:
	// 4711 5 true
	// 3000 0 true
}

func ExampleTree_Min() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Min())
	// Output: 1001 12 true
}

func ExampleTree_Max() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Max())
	// Output: 4711 5 true
}

func ExampleTree_Floor() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Floor(4000)) // the last at or before
	// Output: 3000 0 true
}

func ExampleTree_Ceil() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Ceil(4000)) // the first at or after
	// Output: 4711 5 true
}

func ExampleTree_Rank() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Rank(3000), t.Rank(9999))
	// Output: 1 3
}

func ExampleTree_RankBatch() {
	t := stock()
	defer t.Close()
	ranks := make([]int, 3)
	t.RankBatch([]uint32{0, 3000, 9999}, ranks)
	fmt.Println(ranks)
	// Output: [0 1 3]
}

func ExampleTree_At() {
	t := stock()
	defer t.Close()
	fmt.Println(t.At(t.Len() / 2)) // the median
	// Output: 3000 0
}

func ExampleTree_All() {
	t := stock()
	defer t.Close()
	for article, pieces := range t.All() {
		if pieces == 0 {
			t.Delete(article) // a tree may be changed while it is read
		}
	}
	fmt.Println(t.Len())
	// Output: 2
}

func ExampleTree_Backward() {
	t := stock()
	defer t.Close()
	for article := range t.Backward() {
		fmt.Println(article)
	}
	// Output:
	// 4711
	// 3000
	// 1001
}

func ExampleTree_Range() {
	t := stock()
	defer t.Close()
	for article, pieces := range t.Range(1001, 3000) { // both ends belong to it
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 3000 0
}

func ExampleTree_RangeBatch() {
	t := stock()
	defer t.Close()
	r := t.RangeBatch([]uint32{0, 3000}, []uint32{2000, 9999}, 10)
	for i := range r.Len() {
		articles, pieces := r.At(i)
		fmt.Println(articles, pieces)
	}
	// Output:
	// [1001] [12]
	// [3000 4711] [0 5]
}

func ExampleTree_Count() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Count(1000, 3999))
	// Output: 2
}

func ExampleTree_CountBatch() {
	t := stock()
	defer t.Close()
	counts := make([]int, 2)
	t.CountBatch([]uint32{0, 3000}, []uint32{2000, 9999}, counts)
	fmt.Println(counts)
	// Output: [1 2]
}

func ExampleTree_PrefixCount() {
	t := pages()
	defer t.Close()
	fmt.Println(t.PrefixCount("/books"))
	// Output: 2
}

// What is saved is the tree as it is at one moment, while others go on changing it.
func ExampleTree_Save() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stock.pando")
	t := stock()
	defer t.Close()
	if err := t.Save(path); err != nil {
		log.Fatal(err)
	}
	ix, err := pando.Open[uint32, int](path)
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Get(1001))
	// Output: 12 true
}

func ExampleTree_WriteTo() {
	t := stock()
	defer t.Close()
	var stream bytes.Buffer
	if _, err := t.WriteTo(&stream); err != nil {
		log.Fatal(err)
	}
	ix, err := pando.Read[uint32, int](&stream)
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 3
}

func ExampleTree_Stats() {
	t := stock()
	defer t.Close()
	s := t.Stats()
	fmt.Println(s.Len, s.Layout)
	// Output: 3 bplus
}

func ExampleTree_String() {
	t := stock()
	defer t.Close()
	text := fmt.Sprint(t)
	fmt.Println(strings.HasPrefix(text, "pando.Tree[uint32,int]{3 entries"))
	// Output: true
}

func ExampleTree_Close() {
	t := stock()
	fmt.Println(t.Close(), errors.Is(t.Set(1, 1), pando.ErrClosed))
	// Output: <nil> true
}

// pages returns a tree of pages and how often they were read.
func pages() *pando.Tree[string, int] {
	t, err := pando.TreeOf([]string{"/books", "/books/go", "/news"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	return t
}

// Keys that are slices of bytes are not copied to be looked up.
func ExampleTree_HasBytes() {
	t := pages()
	defer t.Close()
	line := []byte("GET /news HTTP/1.1")
	fmt.Println(t.HasBytes(line[4:9]))
	// Output: true
}

func ExampleTree_RankBytes() {
	t := pages()
	defer t.Close()
	fmt.Println(t.RankBytes([]byte("/news")))
	// Output: 2
}

func ExampleTree_SetBytes() {
	t := pages()
	defer t.Close()
	line := []byte("GET /about HTTP/1.1")
	if err := t.SetBytes(line[4:10], 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Len(), t.Has("/about"))
	// Output: 4 true
}

// Keys lie one behind the other, and offsets say where each begins, as Arrow has
// strings.
func ExampleTree_GetBatchBytes() {
	t := pages()
	defer t.Close()
	data, offsets := []byte("/news/books/about"), []int32{0, 5, 11, 17}
	vals, found := make([]int, 3), make([]bool, 3)
	fmt.Println(t.GetBatchBytes(data, offsets, vals, found), vals, found)
	// Output: 2 [3 1 0] [true true false]
}
