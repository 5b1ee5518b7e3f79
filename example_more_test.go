package pando_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"sync"
	"testing/fstest"

	"github.com/pando-index/pando"
)

func ExampleFrozen_Has() {
	ix := prices()
	defer ix.Close()
	fmt.Println(ix.Has(3000), ix.Has(3001))
	// Output: true false
}

// The readings before second 220, latest first, two of them.
func ExampleFrozen_Scan() {
	ix := readings()
	defer ix.Close()
	for second, reading := range ix.Scan(pando.Before(220), pando.Reverse(), pando.Limit(2)) {
		fmt.Println(second, reading)
	}
	// Output:
	// 160 18.5°
	// 160 18.4°
}

// A page of results: what comes after the last one of the page before.
func ExampleHasPrefix() {
	words := []string{"car", "card", "care", "cart", "cat"}
	ix, err := pando.Freeze(words, []int{0, 1, 2, 3, 4})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	for word := range ix.Scan(pando.HasPrefix("car"), pando.After("card"), pando.Limit(2)) {
		fmt.Println(word)
	}
	// Output:
	// care
	// cart
}

func ExampleFrozen_Cursor() {
	ix := readings()
	defer ix.Close()
	c := ix.Cursor()
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

func ExampleFrozen_String() {
	ix, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.CPU))
	if err != nil {
		panic(err)
	}
	ix.Close()
	fmt.Println(ix)
	// Output: pando.Frozen[uint64,uint64]{closed}
}

func ExampleFrozen_CountBatch() {
	ix := prices()
	defer ix.Close()
	counts := make([]int, 2)
	ix.CountBatch([]uint32{1000, 2000}, []uint32{1999, 9999}, counts)
	fmt.Println(counts)
	// Output: [2 3]
}

func ExampleFrozen_Save() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ix := readings() // values that are strings need no codec
	defer ix.Close()
	if err := ix.Save(filepath.Join(dir, "readings.pando")); err != nil {
		log.Fatal(err)
	}
	fmt.Println("saved")
	// Output: saved
}

func ExampleFrozen_WriteTo() {
	ix := prices()
	defer ix.Close()
	var stream bytes.Buffer
	n, err := ix.WriteTo(&stream)
	fmt.Println(n == int64(stream.Len()), err)
	// Output: true <nil>
}

func ExampleRead() {
	ix := prices()
	defer ix.Close()
	var stream bytes.Buffer // or a connection, or a decompressor
	if _, err := ix.WriteTo(&stream); err != nil {
		log.Fatal(err)
	}
	copied, err := pando.Read[uint32, float32](&stream)
	if err != nil {
		log.Fatal(err)
	}
	defer copied.Close()
	fmt.Println(copied.Get(3000))
	// Output: 7.25 true
}

func ExampleReadAt() {
	b := written(prices())
	ix, err := pando.ReadAt[uint32, float32](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 5
}

func ExampleReadBytes() {
	ix, err := pando.ReadBytes[uint32, float32](written(prices()), pando.Verified())
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 5
}

// With //go:embed prices.pando and var files embed.FS the same.
func ExampleReadFS() {
	var files fs.FS = fstest.MapFS{"prices.pando": {Data: written(prices())}}
	ix, err := pando.ReadFS[uint32, float32](files, "prices.pando")
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 5
}

// written returns an index as a file, and closes it.
func written(ix *pando.Frozen[uint32, float32]) []byte {
	defer ix.Close()
	var b bytes.Buffer
	if _, err := ix.WriteTo(&b); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}

func ExampleContext() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := pando.Freeze([]int{1}, []int{1}, pando.Context(ctx))
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

func ExampleRanges_At() {
	ix := prices()
	defer ix.Close()
	groups := ix.RangeBatch([]uint32{1000, 3000}, []uint32{1999, 3999}, 0)
	articles, prices := groups.At(1)
	fmt.Println(articles, prices)
	// Output: [3000] [7.25]
}

func ExampleFrozen_Batcher() {
	ix := prices()
	defer ix.Close()
	b := ix.Batcher(0, 0)
	defer b.Close()
	var all sync.WaitGroup
	found := make([]bool, 3)
	for i, article := range []uint32{1001, 9999, 4711} {
		all.Go(func() { _, found[i] = b.Get(article) })
	}
	all.Wait()
	fmt.Println(found)
	// Output: [true false true]
}

// Batches that come and go through page-locked memory, where there is a GPU.
func ExampleNewBuffer() {
	ix := prices()
	defer ix.Close()
	keys, err := pando.NewBuffer[uint32](2)
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()
	vals, err := pando.NewBuffer[float32](2)
	if err != nil {
		log.Fatal(err)
	}
	defer vals.Close()
	copy(keys.Slice(), []uint32{1001, 2500})
	fmt.Println(ix.GetBatch(keys.Slice(), vals.Slice(), nil), vals.Slice())
	// Output: 2 [3.5 12]
}

func ExampleFreezeBytes() {
	ix, err := pando.FreezeBytes([][]byte{[]byte("b"), []byte("a")}, []int{2, 1})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	fmt.Println(ix.GetBytes([]byte("a")))
	fmt.Println(ix.HasBytes([]byte("x")), ix.RankBytes([]byte("b")))
	// Output:
	// 1 true
	// false 1
}

func ExampleMerge() {
	a, b := set(1, 3, 5), set(3, 4)
	defer a.Close()
	defer b.Close()
	fmt.Println(keysOf(pando.Merge(a, b)))
	fmt.Println(keysOf(pando.Intersect(a, b)))
	fmt.Println(keysOf(pando.Difference(a, b)))
	// Output:
	// [1 3 3 4 5]
	// [3]
	// [1 5]
}

// The same as an index, made on all cores.
func ExampleFreezeMerge() {
	a, b := set(1, 3, 5), set(3, 4)
	defer a.Close()
	defer b.Close()
	all, err := pando.FreezeMerge(a, b)
	if err != nil {
		panic(err)
	}
	defer all.Close()
	fmt.Println(all.Len(), all.Count(3, 3))
	// Output: 5 2
}

func set(keys ...int) pando.Index[int, struct{}] {
	ix, err := pando.Freeze[int, struct{}](keys, nil)
	if err != nil {
		panic(err)
	}
	return ix
}
