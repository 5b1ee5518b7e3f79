package twin

import (
	"testing"

	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// A search may come before the first change, in a stream that knows nothing of the one
// in which the table was made.
func TestFindInNewTree(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(10) {
		cpu := radix.New(0)
		f, err := NewStrings(cpu, ptx.New(ptx.Seed(first+i)), StringsOptions{Workers: 1, ValBits: 64, Room: 64 << 20})
		must(t, err)
		f.Find(cuart.Queries{
			Keys: packing.Strings{Keys: []string{"a", "b", "c"}},
			CPU:  func(lo, hi int) { t.Errorf("the GPU does not answer %d to %d", lo, hi) },
			Take: func(lo int, _, found []byte) {
				if found[0] != 0 {
					t.Errorf("found %b in an empty tree", found[0])
				}
			},
		})
		must(t, f.Down())
		must(t, f.Close())
		cpu.Close()
	}
}
