package radix

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/stall"
)

// A sweep that stands at a desk is no writer: bytes are exact beside it.
func TestBytesBesideSweep(t *testing.T) {
	if !stall.On {
		t.Skip("needs a build with stalls")
	}
	tree := New(0)
	defer tree.Close()
	for i := range 1000 { // enough for a stock at the writer's desk
		tree.Set(fmt.Sprint("key", i), 1)
	}
	for i := range 1000 {
		tree.Delete(fmt.Sprint("key", i))
	}
	settle(tree)

	var once sync.Once
	waits, counted := make(chan struct{}), make(chan int64, 1)
	undo := stall.Use(func(point string) {
		switch point {
		case "radix: count of bytes waits":
			close(waits)
		case "radix: generation ends": // a sweep is at the desk
			once.Do(func() {
				go func() { counted <- tree.Bytes() }()
				select {
				case <-waits:
				case n := <-counted:
					counted <- n
				}
			})
		}
	})
	defer undo()
	tree.Hasten()
	tree.Reclaim()
	if n := <-counted; n != 0 {
		t.Errorf("%d bytes in an empty tree beside a sweep", n)
	}
}
