package chunked

import (
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// Whatever the size of a tree, there is memory for the sum over a table that is queued
// ahead: it has room for more chunks than a small batch makes.
func TestSumsAhead(t *testing.T) {
	tree := &Tree[uint64]{now: &table{}}
	for count := 1; count < 1<<20; count += 61 {
		tree.now.version.Count = uint32(count)
		for _, n := range []int{1, 100, 5000} {
			if need, have := kernel.SumTemp(tree.roomAhead()), device.Aligned(kernel.SumTemp(tree.longest(n))); need > have {
				t.Fatalf("%d operations on %d chunks: a sum takes %d bytes of %d", n, count, need, have)
			}
		}
	}
}
