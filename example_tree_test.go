package pando_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pando-index/pando"
)

// stock is a tree of the number of pieces by article.
func stock() *pando.Tree[uint32, int] {
	t, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		panic(err)
	}
	return t
}

func ExampleNewTree() {
	t, err := pando.NewTree[uint32, int]()
	if err != nil {
		panic(err)
	}
	defer t.Close()
	if err := t.Set(7, 1); err != nil {
		panic(err)
	}
	fmt.Println(t.Get(7))
	// Output: 1 true
}

func ExampleTreeOf() {
	t := stock()
	defer t.Close()
	for article, pieces := range t.All() {
		fmt.Println(article, pieces)
	}
	// Output:
	// 1001 12
	// 3000 0
	// 4711 5
}

func ExampleTree_Swap() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Swap(3000, 8))
	// Output: 0 true <nil>
}

// Take one piece, and the article out of the tree with the last.
func ExampleTree_Update() {
	t := stock()
	defer t.Close()
	for range 5 {
		t.Update(4711, func(pieces int, had bool) (int, bool) { return pieces - 1, had && pieces > 1 })
	}
	fmt.Println(t.Has(4711), t.Len())
	// Output: false 2
}

func ExampleTree_Delete() {
	t := stock()
	defer t.Close()
	fmt.Println(t.Delete(1001))
	fmt.Println(t.Delete(1001))
	// Output:
	// 12 true
	// 0 false
}

func ExampleTree_DeleteRange() {
	t := stock()
	defer t.Close()
	fmt.Println(t.DeleteRange(1000, 3999), t.Len())
	// Output: 2 1
}

func ExampleTree_PopMin() {
	t := stock()
	defer t.Close()
	fmt.Println(t.PopMin())
	fmt.Println(t.PopMax())
	// Output:
	// 1001 12 true
	// 4711 5 true
}

func ExampleTree_SetBatch() {
	t := stock()
	defer t.Close()
	err := t.SetBatch([]uint32{3000, 5000}, []int{1, 2})
	fmt.Println(err, t.Len())
	found := make([]bool, 2)
	fmt.Println(t.DeleteBatch([]uint32{5000, 6000}, found), found)
	// Output:
	// <nil> 4
	// 1 [true false]
}

func ExampleTree_Apply() {
	t := stock()
	defer t.Close()
	ops := []pando.Op{pando.OpGet, pando.OpSet, pando.OpDelete}
	keys, vals, found := []uint32{1001, 3000, 3000}, []int{0, 7, 0}, make([]bool, 3)
	err := t.Apply(ops, keys, vals, found)
	fmt.Println(err, vals, found) // what was there before each
	// Output: <nil> [12 0 7] [true true true]
}

// A snapshot stays as it was.
func ExampleTree_Snapshot() {
	t := stock()
	defer t.Close()
	before := t.Snapshot()
	defer before.Close()
	t.Set(1, 1)
	fmt.Println(before.Len(), t.Len())
	// Output: 3 4
}

func ExampleTree_Freeze() {
	t := stock()
	defer t.Close()
	ix, err := t.Freeze()
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	fmt.Println(ix.Rank(4000))
	// Output: 2
}

func ExampleOpenTree() {
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
	again, err := pando.OpenTree[uint32, int](path)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Len())
	// Output: 3
}

func ExampleTree_Scan() {
	t := stock()
	defer t.Close()
	for article, pieces := range t.Scan(pando.After(1001), pando.Reverse()) {
		fmt.Println(article, pieces)
	}
	// Output:
	// 4711 5
	// 3000 0
}

// A cursor of a tree sees what others change.
func ExampleTree_Cursor() {
	t := stock()
	defer t.Close()
	c := t.Cursor()
	c.Seek(2000)
	t.Set(3500, 1)
	c.Next()
	fmt.Println(c.Key())
	// Output: 3500
}

// Reading is the same for both.
func ExampleIndex() {
	frozen, tree := prices(), stock()
	defer frozen.Close()
	defer tree.Close()
	fmt.Println(articles(frozen), articles(tree))
	// Output: 5 3
}

func articles[V any](ix pando.Index[uint32, V]) int { return ix.Count(0, 9999) }

// A tree of strings has prefixes.
func ExampleTree_Prefix() {
	t, err := pando.NewTree[string, int]()
	if err != nil {
		panic(err)
	}
	defer t.Close()
	for i, page := range []string{"/books/go", "/books", "/news", "/books/c"} {
		if err := t.Set(page, i); err != nil {
			panic(err)
		}
	}
	for page, i := range t.Prefix("/books/") {
		fmt.Println(page, i)
	}
	fmt.Println(t.PrefixCount("/books"))
	// Output:
	// /books/c 3
	// /books/go 0
	// 3
}

// Keys that are slices of bytes are not copied to be looked up.
func ExampleTree_GetBytes() {
	t, err := pando.NewTree[string, int]()
	if err != nil {
		panic(err)
	}
	defer t.Close()
	line := []byte("go 1.25")
	if err := t.SetBytes(line[:2], 25); err != nil {
		panic(err)
	}
	fmt.Println(t.GetBytes([]byte("go")))
	// Output: 25 true
}
