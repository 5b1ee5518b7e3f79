package kernels

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// A tree in which every count is as great as can be is searched without a read
// outside of it, also one with as many children as separators: there a count
// leads one child too far on each level, and with so many levels past the end.
func TestDamagedTreeWithFewerChildren(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d device.Device, rng *rand.Rand) {
		damagedTree[uint32](t, d, implicit.Pairs, 16, 16*16*16*16+1, rng)
		damagedTree[uint64](t, d, implicit.Pairs, 8, 8*8*8*8*8+1, rng)
		damagedTree[uint32](t, d, implicit.Apart, 17, 17*17+1, rng)
		damagedTree[uint64](t, d, implicit.Apart, 9, 9*9*9+1, rng)
	})
}

func damagedTree[C simd.Code](t *testing.T, d device.Device, leaves implicit.Leaves, fanout, lines int, rng *rand.Rand) {
	w, perLeaf := widthOf[C](), 512/widthOf[C]()
	if leaves == implicit.Pairs {
		perLeaf /= 2
	}
	keys := make([]C, (lines-1)*perLeaf+1)
	for i := range keys {
		keys[i] = C(i)
	}
	tree, err := implicit.Build(layout.Source[C]{Len: len(keys), Codes: keys, Vals: unsafe.Pointer(&keys[0])},
		implicit.Config{Leaves: leaves, ValSize: w / 8, Fanout: fanout})
	must(t, err)
	defer tree.Release()
	clear(tree.Segments()[0])
	for i := range tree.Segments()[1] { // a hit behind the last entry, where the column has no value
		tree.Segments()[1][i] = 0xff
	}
	p := upload(t, d, tree)
	defer p.close(t)
	asked := questions(keys, 64, rng)
	p.askAll(t, asked, leaves)
	p.downEach(t, tree, asked)
	p.sign(t, tree)
	for _, noise := range []uint32{rng.Uint32(), 0, math.MaxUint32} {
		table := *p.signs
		p.askAll(t, asked, leaves)
		p.signs.Buckets = 0
		p.askAll(t, asked, leaves)
		p.signs = &table
		must(t, p.s.Fill(p.signs.Base, noise, p.signs.Bytes()&^3))
	}
	p.askAll(t, asked, leaves)
}

// Kernels count in 32 bits and cut sums to what there is: what is so large that a
// sum would begin again at 0 is refused.
func TestTooLargeToCount(t *testing.T) {
	const most = math.MaxUint32 - 16
	for _, tree := range []simd.Tree{{Len: most, Fanout: 9}, {LastLeaf: 8 * most, Fanout: 9}} {
		if _, err := kernel.NewTree(&tree, 0, 0); !errors.Is(err, kernel.ErrTooLarge) {
			t.Errorf("%d entries, the last leaf at %d: %v", tree.Len, tree.LastLeaf, err)
		}
		if tree.Len--; tree.LastLeaf > 0 {
			tree.Len, tree.LastLeaf = 0, tree.LastLeaf-8
		}
		if _, err := kernel.NewTree(&tree, 0, 0); err != nil {
			t.Errorf("%d entries, the last leaf at %d: %v", tree.Len, tree.LastLeaf, err)
		}
	}
	entries := uint64(math.MaxUint32 - simd.PackedPage)
	if strconv.IntSize == 32 {
		return // nothing is so large
	}
	if _, err := kernel.NewPacked(0, 0, 1<<24, 0, int(entries)); !errors.Is(err, kernel.ErrTooLarge) {
		t.Errorf("packed pages: %v", err)
	}
}

// askAll runs every search of a tree.
func (p *place[C]) askAll(t *testing.T, asked []C, leaves implicit.Leaves) {
	t.Helper()
	w := widthOf[C]()
	p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
		return p.set.Rank(p.s, &p.params, &p.tree, p.signs, w, k, n, out)
	})
	p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
		return p.set.Find(p.s, &p.params, &p.tree, p.signs, w, k, n, out)
	})
	_, found := p.ask(t, asked, w/8, true, func(k device.Ptr, n int, out, bits device.Ptr) error {
		if leaves == implicit.Pairs {
			return p.set.Pairs(p.s, &p.params, &p.tree, p.signs, w, k, n, out, bits)
		}
		return p.set.Apart(p.s, &p.params, &p.tree, p.signs, w, w, k, n, out, bits)
	})
	if last := len(asked) - 1; leaves == implicit.Pairs && found[last/8]>>(last%8)&1 == 0 {
		t.Error("the key that all leaves are full of was not found")
	}
}

// downEach lets queries begin at any node, there or not, and end on each level:
// always at a node of it.
func (p *place[C]) downEach(t *testing.T, tree *implicit.Tree[C], asked []C) {
	t.Helper()
	starts := make([]uint32, len(asked))
	for i := range starts {
		starts[i] = ^uint32(0) >> (i % 32)
	}
	start := p.put(t, arena.Bytes(starts))
	for to := range tree.Depth() + 1 {
		for from := range to + 1 {
			part := p.tree
			part.Levels = uint32(to)
			if first := uint32(tree.Place(from) / 8); from > 0 {
				for i := range starts { // the CPU's path may be past a level, but not before it
					starts[i] = max(starts[i], first)
				}
				must(t, p.s.CopyIn(start, arena.Bytes(starts)))
				part.Start, part.From = start, uint32(from)
			}
			got, _ := p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
				return p.set.Down(p.s, &p.params, &part, widthOf[C](), k, n, out)
			})
			first, last := uint32(tree.Place(to)/8), lastOf(tree, to)
			for i, node := range arena.As[uint32](got) {
				if node < first || node > last {
					t.Fatalf("%s: query %d from level %d to %d ends at node %d, those there are %d to %d", p.d.Info().Name, i, from, to, node, first, last)
				}
			}
		}
	}
}

// lastOf returns the last node of a level, counted from the leaves up.
func lastOf[C simd.Code](tree *implicit.Tree[C], level int) uint32 {
	nodes := int(tree.LastLeaf-tree.Leaves)/8 + 1
	for range tree.Depth() - level {
		nodes = (nodes + int(tree.Fanout) - 1) / int(tree.Fanout)
	}
	return uint32(int(tree.Place(level))/8 + nodes - 1)
}
