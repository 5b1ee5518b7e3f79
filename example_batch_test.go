package pando_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pando-index/pando"
)

func ExampleFrozen_CountBatch() {
	ix, _ := pando.Freeze[int, struct{}]([]int{10, 20, 20, 30}, nil)
	defer ix.Close()
	counts := make([]int, 2)
	ix.CountBatch([]int{10, 20}, []int{20, 20}, counts)
	fmt.Println(counts)
	// Output: [3 2]
}

func ExampleFrozen_Save() {
	folder, _ := os.MkdirTemp("", "pando")
	defer os.RemoveAll(folder)
	ix, _ := pando.Freeze([]uint64{3, 1, 2}, []float64{0.3, 0.1, 0.2})
	defer ix.Close()
	path := filepath.Join(folder, "prices.pando")
	if err := ix.Save(path); err != nil { // there under its name when it is whole, or not at all
		fmt.Println(err)
	}
	info, _ := pando.Inspect(path)
	fmt.Println(info.Len, info.Key, info.Value)
	// Output: 3 uint64 float64
}

func ExampleFrozen_WriteTo() {
	ix, _ := pando.Freeze([]uint64{3, 1, 2}, []uint64{30, 10, 20})
	defer ix.Close()
	var file bytes.Buffer // or a connection, or an upload
	n, err := ix.WriteTo(&file)
	fmt.Println(n == int64(file.Len()), err)
	// Output: true <nil>
}

func ExampleFrozen_Batcher() {
	ix, _ := pando.Freeze([]string{"a", "b"}, []int{1, 2})
	defer ix.Close()
	b := ix.Batcher(50*time.Microsecond, 1000) // waits so long for at most so many
	defer b.Close()
	v, ok := b.Get("b") // from many goroutines: they are answered together
	fmt.Println(v, ok)
	// Output: 2 true
}

func ExampleBatcher_Get() {
	ix, _ := pando.Freeze([]int{1, 2}, []string{"one", "two"})
	defer ix.Close()
	b := ix.Batcher(50*time.Microsecond, 1000)
	defer b.Close()
	fmt.Println(b.Get(2))
	// Output: two true
}

func ExampleBatcher_Close() {
	ix, _ := pando.Freeze([]int{1, 2}, []string{"one", "two"})
	defer ix.Close()
	b := ix.Batcher(50*time.Microsecond, 1000)
	fmt.Println(b.Close()) // before the index
	// Output: <nil>
}

func ExampleNewBuffer() {
	ix, _ := pando.Freeze([]uint64{1, 2, 3}, []uint64{10, 20, 30})
	defer ix.Close()
	asked, _ := pando.NewBuffer[uint64](2) // where there is a GPU, it copies from here itself
	defer asked.Close()
	vals, _ := pando.NewBuffer[uint64](2)
	defer vals.Close()
	copy(asked.Slice(), []uint64{3, 1})
	hits := ix.GetBatch(asked.Slice(), vals.Slice(), make([]bool, 2))
	fmt.Println(hits, vals.Slice())
	// Output: 2 [30 10]
}

func ExampleBuffer_Slice() {
	b, _ := pando.NewBuffer[uint32](3)
	defer b.Close()
	fmt.Println(len(b.Slice()))
	// Output: 3
}

func ExampleBuffer_Locked() {
	b, _ := pando.NewBuffer[uint32](3)
	defer b.Close()
	if b.Locked() {
		fmt.Fprintln(os.Stderr, "a GPU copies from and to this memory itself")
	}
}

func ExampleBuffer_Close() {
	b, _ := pando.NewBuffer[uint32](3)
	fmt.Println(b.Close()) // its slice must not be used any more
	// Output: <nil>
}

func ExampleRanges_At() {
	ix, _ := pando.Freeze([]int{10, 20, 30}, []string{"a", "b", "c"})
	defer ix.Close()
	r := ix.RangeBatch([]int{10, 25}, []int{20, 40}, 0)
	keys, vals := r.At(1) // of the second range
	fmt.Println(keys, vals)
	// Output: [30] [c]
}

func ExampleRanges_Len() {
	ix, _ := pando.Freeze([]int{10, 20, 30}, []string{"a", "b", "c"})
	defer ix.Close()
	fmt.Println(ix.RangeBatch([]int{10, 25}, []int{20, 40}, 0).Len())
	// Output: 2
}
