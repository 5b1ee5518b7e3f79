package cuart

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// What the last portion of a new table frees may be on its way to a list that has to
// grow for the nodes of the old table.
func TestListsUnderWay(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(10) {
		rng := rand.New(rand.NewPCG(first+i, 5))
		dev := ptx.New(ptx.Seed(first + i))
		r := newRig(t, dev, Options{Room: 64 << 20, Seed: 1})
		r.tree.perSlot, r.tree.portion = 1, 60
		var keys []string
		for group := range 170 { // of one slot each: some in a node that grows once
			for j := range 2 + group%9/8*4 {
				keys = append(keys, fmt.Sprintf("%d%080d", 100+group, j))
			}
		}
		slices.Sort(keys)
		r.load(keys, rng)
		var more []string
		for j := range 600 {
			more = append(more, fmt.Sprint("more", j))
		}
		vals := make([]uint64, len(more))
		r.apply(more, vals, slices.Repeat([]op.Kind{op.Set}, len(more)), 0)
		if r.tree.rebuilds != 1 {
			t.Errorf("%d new tables", r.tree.rebuilds)
		}
		r.check()
		must(t, r.tree.Close())
		must(t, dev.Close())
	}
}
