package inside

import (
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

func StepConfig(pages arena.Pages) implicit.Config {
	return implicit.Config{Leaves: implicit.Apart, Pages: pages, Workers: contest.AllCores()}
}

// CPU is one of the CPU alone, for numbers that are their own codes.
type CPU[W data.Word] struct{ *exec.CPU[W] }

func (c CPU[W]) Rank(keys []W, ranks []int) { c.CPU.Rank(order.KeysOf(keys), ranks) }

func (c CPU[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return c.CPU.GetPairs(order.KeysOf(keys), vals, found)
}

// BuildTree makes a tree as Frozen would, except for cfg's fanout.
func BuildTree[W data.Word](d *data.Dataset[W], cfg implicit.Config) (*implicit.Tree[W], error) {
	cfg.Leaves, cfg.ValSize, cfg.Pages = implicit.Pairs, data.BitsOf[W]()/8, arena.HugeAll
	return implicit.Build(layout.Source[W]{
		Len:   len(d.Keys),
		Codes: d.Keys,
		Vals:  unsafe.Pointer(unsafe.SliceData(d.Vals)),
	}, cfg)
}

// TreeBytes returns the bytes per entry of the tree.
func TreeBytes[W data.Word](t *implicit.Tree[W]) float64 {
	st := t.Stats()
	return float64(st.InnerBytes+st.LeafBytes+st.ValueBytes) / float64(t.Len())
}

// OnPath makes all threads of a run use a path.
func OnPath(p simd.Path, do func(int) error) func(int) error {
	return func(ops int) error {
		defer simd.Use(p)()
		return do(ops)
	}
}
