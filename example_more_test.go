package pando_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
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

func ExampleFrozen_GetBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	line := []byte("birch,elm")
	v, ok := ix.GetBytes(line[:5]) // no string is made of it
	fmt.Println(v, ok)
	// Output: 2 true
}

func ExampleFrozen_HasBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	fmt.Println(ix.HasBytes([]byte("elm")), ix.HasBytes([]byte("oak")))
	// Output: true false
}

func ExampleFrozen_RankBytes() {
	ix, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	fmt.Println(ix.RankBytes([]byte("cedar")))
	// Output: 2
}
