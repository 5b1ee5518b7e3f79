package kernels

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// sign makes signs of a tree, however small it is, with a word behind them, and returns how many of its
// leaves they miss. Behind the table there may be room that nothing is written to.
func (p *place[C]) sign(t *testing.T, tree *implicit.Tree[C]) (astray int) {
	t.Helper()
	low, high := ends(tree)
	g := kernel.NewSigns(&tree.Tree, uint64(low), uint64(high))
	g.Base = p.alloc(t, g.Bytes()+4)
	must(t, p.s.Fill(g.Base, 0, g.Bytes()+4))
	p.signs = &g
	must(t, p.set.Sign(p.s, &p.tree, &g, widthOf[C]()))
	return p.astray(t)
}

// astray returns how many leaves the signs miss.
func (p *place[C]) astray(t *testing.T) int {
	count := p.signs.Base + device.Ptr(p.signs.Bytes())
	must(t, p.s.Fill(count, 0, 4))
	must(t, p.set.Astray(p.s, &p.tree, p.signs, widthOf[C](), count))
	return int(binary.LittleEndian.Uint32(p.get(t, count, 4)))
}

// ends returns the first and the last key of a tree.
func ends[C simd.Code](tree *implicit.Tree[C]) (low, high C) {
	leaf := func(place uint64) *[64]C { return (*[64]C)(unsafe.Add(tree.Base, place*8)) }
	return leaf(tree.Leaves)[0], leaf(tree.LastLeaf)[1<<tree.LeafShift-1]
}

// Keys of every kind are found by signs: those that they lead to at once, and those that signs cannot tell apart.
func TestSigns(t *testing.T) {
	seeds := 40
	if !seed.Long() {
		seeds = 4
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		signed[uint32](t, d, rng)
		signed[uint64](t, d, rng)
	})
}

func signed[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	w := widthOf[C]()
	kinds := map[string]struct {
		next           func(i int) C
		bucket, levels bool // table, and levels, lead to all but a hundredth of the leaves
	}{
		"random":   {func(int) C { return C(rng.Uint64()) }, true, true},
		"dense":    {func(i int) C { return C(i) + 1<<(w-3) - 3000 }, true, true},
		"high":     {func(i int) C { return ^C(0) - C(i)*3 }, true, true},
		"steps":    {func(i int) C { return C(i)*C(i) + 7 }, false, true},
		"clusters": {func(int) C { return C(rng.IntN(40))<<(w-6) + C(rng.IntN(1000)) }, false, false},
		"powers":   {func(int) C { return C(1)<<rng.IntN(w) + C(rng.IntN(200)) }, false, false},
		"few":      {func(int) C { return C(rng.IntN(5)) - 2 }, false, false},
		"runs":     {func(i int) C { return C(i/100)*977 + C(rng.IntN(2)) }, false, false},
	}
	for name, kind := range kinds {
		n := 1 + rng.IntN(20_000)
		keys := make([]C, n)
		for i := range keys {
			keys[i] = kind.next(i)
		}
		slices.Sort(keys)
		vals := make([]C, n)
		for i := range vals {
			vals[i] = C(i)*7 + 1
		}
		leaves := []implicit.Leaves{implicit.Pairs, implicit.Apart}[rng.IntN(2)]
		tree, err := implicit.Build(layout.Source[C]{Len: n, Codes: keys, Vals: unsafe.Pointer(&vals[0])}, implicit.Config{Leaves: leaves, ValSize: w / 8})
		must(t, err)
		p := upload(t, d, tree)
		what := fmt.Sprintf("%s, %d bits, %v, %d keys %s", d.Info().Name, w, leaves, n, name)
		asked := questions(keys, 400, rng)
		most := (int(tree.LastLeaf-tree.Leaves)/8 + 1) / 100
		if astray := p.sign(t, tree); kind.bucket && astray > most {
			t.Errorf("%s: the table misses %d leaves, more than %d", what, astray, most)
		}
		p.compare(t, what+", with a table", keys, vals, asked, leaves)
		p.signs.Buckets = 0
		if astray := p.astray(t); kind.levels && astray > most {
			t.Errorf("%s: signs miss %d leaves, more than %d", what, astray, most)
		}
		p.compare(t, what, keys, vals, asked, leaves)
		p.close(t)
		tree.Release()
	}
}
