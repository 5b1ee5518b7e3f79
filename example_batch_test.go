package pando_test

import (
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
)

// Calls of many goroutines are answered together.
func ExampleFrozen_Batcher() {
	trees, err := pando.Freeze([]string{"ash", "birch", "elm"}, []int{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer trees.Close()

	b := trees.Batcher(50*time.Microsecond, 1000) // waits 50 µs at most, for 1000 calls at most
	defer b.Close()
	v, ok := b.Get("birch")
	fmt.Println(v, ok)
	// Output: 2 true
}

// A batcher of a tree sees what others change. It is closed before the tree.
func ExampleTree_Batcher() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()
	b := stock.Batcher(pando.DefaultWait, pando.DefaultBatch)
	defer b.Close()

	if err := stock.Set(3000, 3); err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	var total atomic.Int64
	for _, article := range []uint32{1001, 3000, 4711, 9999} {
		wg.Go(func() { // a handler, say
			if pieces, ok := b.Get(article); ok {
				total.Add(int64(pieces))
			}
		})
	}
	wg.Wait()
	fmt.Println(total.Load(), "pieces")
	// Output: 20 pieces
}

func ExampleBatcher_Get() {
	names, err := pando.Freeze([]int{1, 2}, []string{"one", "two"})
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()

	b := names.Batcher(50*time.Microsecond, 1000)
	defer b.Close()
	fmt.Println(b.Get(2))
	// Output: two true
}

// A batcher is closed before its index.
func ExampleBatcher_Close() {
	names, err := pando.Freeze([]int{1, 2}, []string{"one", "two"})
	if err != nil {
		log.Fatal(err)
	}
	b := names.Batcher(50*time.Microsecond, 1000)
	fmt.Println(b.Close())
	fmt.Println(names.Close())
	// Output:
	// <nil>
	// <nil>
}

// Where there is a GPU, and the program imports package cuda, it copies from and to
// buffers itself.
func ExampleNewBuffer() {
	ix, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{10, 20, 30})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	asked, err := pando.NewBuffer[uint64](2)
	if err != nil {
		log.Fatal(err)
	}
	defer asked.Close()
	vals, err := pando.NewBuffer[uint64](2)
	if err != nil {
		log.Fatal(err)
	}
	defer vals.Close()

	copy(asked.Slice(), []uint64{3, 1})
	hits := ix.GetBatch(asked.Slice(), vals.Slice(), nil)
	fmt.Println(hits, vals.Slice())
	// Output: 2 [30 10]
}

func ExampleBuffer_Slice() {
	b, err := pando.NewBuffer[uint32](3)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	fmt.Println(len(b.Slice()))
	// Output: 3
}

func ExampleBuffer_Locked() {
	b, err := pando.NewBuffer[uint32](3)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	if b.Locked() {
		fmt.Fprintln(os.Stderr, "a GPU copies from and to this memory itself")
	}
}

// The slice must not be used after Close.
func ExampleBuffer_Close() {
	b, err := pando.NewBuffer[uint32](3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Close())
	// Output: <nil>
}
