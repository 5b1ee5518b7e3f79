package inside

import (
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packed"
)

// Trees of numbers: the usual one, the one of compressed keys, and that of the
// FAST paper.
type (
	Tree[W data.Word]   = implicit.Tree[W]
	Packed[W data.Word] = packed.Tree[W]
	Paged               = blocked.Tree[uint32]
)

// Distance is the number of queries that a batch has between two steps of one
// of them, unless a tree says otherwise.
const Distance = implicit.DefaultDistance

// BuildTree makes a tree of pairs as Frozen would, except for its fanout; 0 is
// Frozen's own, and 0 workers are one a core.
func BuildTree[W data.Word](d *data.Dataset[W], fanout, workers int) (*Tree[W], error) {
	src := keysOf(d)
	src.Vals = unsafe.Pointer(unsafe.SliceData(d.Vals))
	return implicit.Build(src, implicit.Config{
		Fanout: fanout, Leaves: implicit.Pairs, ValSize: data.BitsOf[W]() / 8, Pages: HugePages, Workers: workers,
	})
}

// BuildKeys makes a tree of keys without values.
func BuildKeys[W data.Word](d *data.Dataset[W]) (*Tree[W], error) {
	return implicit.Build(keysOf(d), keysAlone(HugePages))
}

// BuildPacked makes a tree of compressed keys without values. A distance of 0
// is its own.
func BuildPacked[W data.Word](d *data.Dataset[W], distance int) (*Packed[W], error) {
	cfg := keysAlone(HugePages)
	cfg.Distance = distance
	return packed.Build(keysOf(d), cfg)
}

// BuildPaged makes a tree of blocks of keys without values; k and p are the
// geometry of its lines and pages, 0 for the usual ones.
func BuildPaged(d *data.Dataset[uint32], k, p int, pages Pages) (*Paged, error) {
	return blocked.Build(keysOf(d), blocked.Config{Config: keysAlone(pages), Geometry: blocked.Geometry{K: k, P: p}})
}

func keysOf[W data.Word](d *data.Dataset[W]) layout.Source[W] {
	return layout.Source[W]{Len: len(d.Keys), Codes: d.Keys}
}

func keysAlone(pages Pages) implicit.Config {
	return implicit.Config{Leaves: implicit.Apart, Pages: pages, Workers: contest.AllCores()}
}

// TreeBytes returns the bytes per entry of the tree.
func TreeBytes[W data.Word](t *Tree[W]) float64 {
	st := t.Stats()
	return float64(st.InnerBytes+st.LeafBytes+st.ValueBytes) / float64(t.Len())
}

// GetPairs looks keys up in a tree of pairs on the caller's goroutine.
func GetPairs[W data.Word](t *Tree[W], keys, vals []W, found []bool) (hits int) {
	return implicit.Paired[W]{Tree: t}.GetPairs(keys, vals, found)
}
