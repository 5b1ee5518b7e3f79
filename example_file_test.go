package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/pando-index/pando"
)

// A file is there under its name when it is whole, or not at all.
func ExampleFrozen_Save() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "prices.pando")

	prices, err := pando.Freeze([]uint32{30, 10, 20}, []float32{3.5, 1.5, 2.5})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	if err := prices.Save(path); err != nil {
		log.Fatal(err)
	}

	info, err := pando.Inspect(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Len, info.Key, info.Value)
	// Output: 3 uint32 float32
}

// A file is saved once and opened by any number of programs, each in a moment.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "prices.pando")

	ix, err := pando.Freeze([]uint32{30, 10, 20}, []float32{3.5, 1.5, 2.5})
	if err != nil {
		log.Fatal(err)
	}
	if err := ix.Save(path); err != nil {
		log.Fatal(err)
	}
	ix.Close()

	prices, err := pando.Open[uint32, float32](path)
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	fmt.Println(prices.Get(20))

	_, err = pando.Open[int, float64](path)
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

	ix, err := pando.Freeze([]uint32{7, 8}, []float32{1.5, 2})
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
	// 2 uint32 float32 pairs
	// <nil>
}

func ExampleNote() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "days.pando")

	ix, err := pando.Freeze([]int{18262, 18263}, []float64{1.5, 2.5}, pando.Note("keys are days since 1970"))
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
	fmt.Println(info.Note)
	// Output: keys are days since 1970
}

func ExampleFrozen_WriteTo() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	var stream bytes.Buffer // or a connection, or an upload
	n, err := prices.WriteTo(&stream)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n == int64(stream.Len()))
	// Output: true
}

func ExampleRead() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	var stream bytes.Buffer // or a connection, or a decompressor
	if _, err := prices.WriteTo(&stream); err != nil {
		log.Fatal(err)
	}

	again, err := pando.Read[uint32, float32](&stream)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Get(3000))
	// Output: 7.25 true
}

func ExampleReadAt() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	var file bytes.Buffer
	if _, err := prices.WriteTo(&file); err != nil {
		log.Fatal(err)
	}

	r := bytes.NewReader(file.Bytes()) // or a part of an archive
	again, err := pando.ReadAt[uint32, float32](r, r.Size())
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Get(3000))
	// Output: 7.25 true
}

func ExampleReadBytes() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	var file bytes.Buffer
	if _, err := prices.WriteTo(&file); err != nil {
		log.Fatal(err)
	}

	again, err := pando.ReadBytes[uint32, float32](file.Bytes(), pando.Verified())
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Get(3000))
	// Output: 7.25 true
}

// With //go:embed prices.pando and var files embed.FS the same.
func ExampleReadFS() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()
	var file bytes.Buffer
	if _, err := prices.WriteTo(&file); err != nil {
		log.Fatal(err)
	}
	var files fs.FS = fstest.MapFS{"prices.pando": {Data: file.Bytes()}}

	again, err := pando.ReadFS[uint32, float32](files, "prices.pando")
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Get(3000))
	// Output: 7.25 true
}
