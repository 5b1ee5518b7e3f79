//go:build stalls && amd64 && unix && !noasm

package concurrent_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/stall"
)

// What a batch has read stays what it was, even if others replace it, and the
// memory of its value is used for another one, before the batch is done.
func TestApplyReportsWhatItRead(t *testing.T) {
	tree, err := pando.NewTree[uint64, string]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	const n = 50
	keys, vals, ops, found := make([]uint64, n), make([]string, n), make([]pando.Op, n), make([]bool, n)
	for i := range keys {
		keys[i] = uint64(i)
		tree.Set(keys[i], fmt.Sprint("old ", i))
	}
	var come atomic.Bool
	undo := stall.Use(func(point string) {
		if point != "batch: parents not told" || come.Swap(true) {
			return
		}
		for round := range 6 { // each at least one generation
			for _, k := range keys {
				tree.Set(k, fmt.Sprint("new ", round))
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	defer undo()
	if err := tree.Apply(ops, keys, vals, found); err != nil {
		t.Fatal(err)
	}
	if !come.Load() {
		t.Fatal("nobody came to the end of a piece")
	}
	for i, v := range vals {
		if v != fmt.Sprint("old ", i) || !found[i] {
			t.Fatalf("OpGet of key %d reports %q, %t", i, v, found[i])
		}
	}
}
