package pando_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pando-index/pando"
)

// A file is saved once and opened by any number of programs, each in a moment.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "prices.pando")

	ix, err := pando.Freeze([]uint64{30, 10, 20}, []float64{3.5, 1.5, 2.5})
	if err != nil {
		log.Fatal(err)
	}
	if err := ix.Save(path); err != nil {
		log.Fatal(err)
	}
	ix.Close()

	prices, err := pando.Open[uint64, float64](path)
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	fmt.Println(prices.Get(20))

	_, err = pando.Open[string, float64](path)
	fmt.Println(errors.Is(err, pando.ErrType))
	// Output:
	// 2.5 true
	// true
}

// Values that hold pointers are written and read by functions of yours.
func ExampleValues() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "names.pando")

	asText := pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) { return string(b), nil },
	)
	ix, err := pando.Freeze([]int{2, 1}, []string{"two", "one"}, asText)
	if err != nil {
		log.Fatal(err)
	}
	if err := ix.Save(path); err != nil {
		log.Fatal(err)
	}
	ix.Close()

	names, err := pando.Open[int, string](path, asText)
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()
	for k, v := range names.All() {
		fmt.Println(k, v)
	}
	// Output:
	// 1 one
	// 2 two
}

// Inspect tells what is in a file before its types are known.
func ExampleInspect() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "index.pando")
	ix, err := pando.Freeze([]uint32{7, 8}, []int32{1, 2})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		log.Fatal(err)
	}
	info, err := pando.Inspect(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Len, info.Key, info.Value, info.Layout)
	fmt.Println(pando.Verify(path))
	// Output:
	// 2 uint32 int32 pairs
	// <nil>
}

func ExampleNote() {
	folder, _ := os.MkdirTemp("", "pando")
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "days.pando")
	ix, _ := pando.Freeze([]int32{18262, 18263}, []float64{1.5, 2.5}, pando.Note("keys are days since 1970"))
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		fmt.Println(err)
	}
	info, _ := pando.Inspect(path)
	fmt.Println(info.Note)
	// Output: keys are days since 1970
}
