package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

// A value is appended to memory of the caller's, so that none is allocated for it.
func ExampleTree_GetAppend() {
	pages, err := pando.NewTree[string, []byte]()
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close()
	if err := pages.Set("/", []byte("<h1>Trees</h1>")); err != nil {
		log.Fatal(err)
	}

	reply := []byte("HTTP/1.1 200 OK\r\n\r\n")
	reply, found := pages.GetAppend("/", reply)
	fmt.Printf("%q %v\n", reply, found)
	// Output: "HTTP/1.1 200 OK\r\n\r\n<h1>Trees</h1>" true
}

func ExampleTree_GetBytesAppend() {
	pages, err := pando.TreeOf([]string{"/", "/elm"}, []string{"Trees", "Elms"})
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close()

	line := []byte("GET /elm")
	reply, found := pages.GetBytesAppend(line[4:], nil)
	fmt.Println(string(reply), found)
	// Output: Elms true
}

// Values come one behind the other, and offsets say where each begins, as Arrow has them.
func ExampleTree_GetBatchAppend() {
	pages, err := pando.TreeOf([]uint64{1, 2, 4}, []string{"ash", "birch", "elm"})
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close()

	keys := []uint64{4, 3, 2}
	offsets, found := make([]int64, len(keys)+1), make([]bool, len(keys))
	data, hits := pages.GetBatchAppend(keys, nil, offsets, found)
	fmt.Println(string(data), offsets, found, hits)
	// Output: elmbirch [0 3 3 8] [true false true] 2
}

func ExampleTree_GetBatchBytesAppend() {
	pages, err := pando.TreeOf([]string{"/", "/elm"}, []string{"Trees", "Elms"})
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close()

	keys, ends := []byte("/elm/oak/"), []int32{0, 4, 8, 9}
	offsets := make([]int64, 4)
	data, hits := pages.GetBatchBytesAppend(keys, ends, nil, offsets, nil)
	fmt.Println(string(data), offsets, hits)
	// Output: ElmsTrees [0 4 4 9] 2
}

// Keys and values lie one behind the other. The tree copies both once.
func ExampleTree_SetBatchPacked() {
	pages, err := pando.NewTree[string, string]()
	if err != nil {
		log.Fatal(err)
	}
	defer pages.Close()

	keys, ends := []byte("//elm"), []int32{0, 1, 5}
	vals, offsets := []byte("TreesElms"), []int64{0, 5, 9}
	if err := pages.SetBatchPacked(keys, ends, vals, offsets); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pages.Get("/elm"))
	// Output: Elms true
}

func ExampleFrozen_GetAppend() {
	ix, err := pando.Freeze([]string{"ash", "elm"}, []string{"Fraxinus", "Ulmus"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	line, found := ix.GetAppend("elm", []byte("elm: "))
	fmt.Println(string(line), found)
	// Output: elm: Ulmus true
}

func ExampleFrozen_GetBytesAppend() {
	ix, err := pando.Freeze([]string{"ash", "elm"}, []string{"Fraxinus", "Ulmus"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	name, found := ix.GetBytesAppend([]byte("ash"), nil)
	fmt.Println(string(name), found)
	// Output: Fraxinus true
}

func ExampleFrozen_GetBatchAppend() {
	ix, err := pando.Freeze([]string{"ash", "elm"}, []string{"Fraxinus", "Ulmus"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	offsets := make([]int64, 3)
	data, hits := ix.GetBatchAppend([]string{"elm", "ash"}, nil, offsets, nil)
	fmt.Println(string(data[offsets[1]:offsets[2]]), hits)
	// Output: Fraxinus 2
}

func ExampleFrozen_GetBatchBytesAppend() {
	ix, err := pando.Freeze([]string{"ash", "elm"}, []string{"Fraxinus", "Ulmus"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	offsets := make([]int64, 3)
	data, hits := ix.GetBatchBytesAppend([]byte("elmash"), []int32{0, 3, 6}, nil, offsets, nil)
	fmt.Println(string(data), offsets, hits)
	// Output: UlmusFraxinus [0 5 13] 2
}
