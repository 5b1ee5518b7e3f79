package pando_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pando-index/pando"
)

func ExampleMemoryLimit() {
	keys := make([]uint64, 1_000_000)
	_, err := pando.Freeze(keys, keys, pando.MemoryLimit(4<<20)) // the values alone take 8 MB
	fmt.Println(errors.Is(err, pando.ErrMemoryLimit))
	// Output: true
}

func ExampleResponseTime() {
	keys := []uint64{2, 3, 5, 7}
	ix, err := pando.Freeze(keys, keys, pando.ResponseTime(5*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	vals := make([]uint64, 3)
	hits := ix.GetBatch([]uint64{5, 6, 7}, vals, nil)
	fmt.Println(hits, vals)
	// Output: 2 [5 0 7]
}

func ExampleLayout() {
	keys := []uint64{1, 2, 3}
	small, err := pando.Freeze(keys, keys, pando.Layout(pando.Compressed))
	if err != nil {
		log.Fatal(err)
	}
	defer small.Close()
	fmt.Println(small.Stats().Layout)

	_, err = pando.Freeze(keys, []string{"a", "b", "c"}, pando.Layout(pando.Pairs))
	fmt.Println(errors.Is(err, pando.ErrLayout))
	// Output:
	// compressed
	// true
}

func ExampleContext() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := pando.Freeze([]int{1}, []string{"one"}, pando.Context(ctx))
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

func ExampleParseDevice() {
	d, err := pando.ParseDevice("hybrid:0")
	fmt.Println(d == pando.Hybrid(0), err)
	_, err = pando.ParseDevice("tpu")
	fmt.Println(err)
	// Output:
	// true <nil>
	// pando: no such device: "tpu"; take auto, cpu, gpu:0 or hybrid:0
}
