package twin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
)

func TestCounts(t *testing.T) {
	for _, n := range []int{1024, 4096, 65536} {
		dev := faulty.New(ptx.New(), faulty.Plan{})
		s, err := NewSolo[uint64](dev, Options{Workers: 1})
		must(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		set := func() {
			must(t, s.Apply(&Batch[uint64]{N: n, Kind: bplus.Set, Fill: func(lo int, ks, vs []uint64, _ []uint8) {
				for i := range ks {
					ks[i] = rng.Uint64()
				}
			}}))
		}
		for i := range 6 {
			before := map[faulty.Op]int{}
			for _, op := range faulty.Ops() {
				before[op] = dev.Count(op)
			}
			set()
			out := ""
			for _, op := range faulty.Ops() {
				if k := dev.Count(op) - before[op]; k > 0 {
					out += fmt.Sprintf(" %v %d", op, k)
				}
			}
			t.Log(n, i, out)
		}
		s.Close()
	}
}
