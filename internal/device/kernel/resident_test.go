package kernel_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/simd"
)

// BenchmarkResident compares ranks in the three layouts on a GPU, with queries
// and results in its memory, timed by events: Gq/s is billions of queries per
// second.
//
//	./run.sh test internal/device/kernel -test.run '^$' -test.bench Resident
func BenchmarkResident(b *testing.B) {
	d, err := cuda.Open(0)
	if err != nil {
		b.Skip("no GPU: ", err)
	}
	defer d.Close()
	b.Run("uint32", func(b *testing.B) { resident[uint32](b, d) })
	b.Run("uint64", func(b *testing.B) { resident[uint64](b, d) })
}

const (
	residentKeys    = 64 << 20
	residentQueries = 32 << 20
)

// gpu is a device in use by a benchmark.
type gpu[C simd.Code] struct {
	d          device.Device
	s          device.Stream
	set        *kernel.Set
	params     kernel.Params
	keys       device.Ptr
	nodes, out device.Ptr
}

func ok(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (g *gpu[C]) put(b *testing.B, memory []byte) device.Ptr {
	b.Helper()
	at, err := g.d.Alloc(len(memory))
	ok(b, err)
	ok(b, g.s.CopyIn(at, memory))
	ok(b, g.s.Synchronize())
	return at
}

func resident[C simd.Code](b *testing.B, d device.Device) {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([]C, residentKeys)
	for i := range keys {
		keys[i] = C(rng.Uint64()) >> (widthOf[C]() - 32) // 64 bits: as close to each other as 32-bit keys
	}
	slices.Sort(keys)
	asked := make([]C, residentQueries)
	for i := range asked {
		asked[i] = keys[rng.IntN(len(keys))]
	}
	g := &gpu[C]{d: d}
	var err error
	g.s, err = d.NewStream()
	ok(b, err)
	g.set, err = kernel.Load(d, kernel.BlockedSource)
	ok(b, err)
	g.keys = g.put(b, arena.Bytes(asked))
	g.nodes, g.out = g.put(b, make([]byte, 4*len(asked))), g.put(b, make([]byte, 4*len(asked)))
	src := implicit.Source[C]{Len: len(keys), Codes: keys}
	b.Run("implicit", func(b *testing.B) { g.implicit(b, src) })
	b.Run("blocked", func(b *testing.B) { g.blocked(b, src) })
	b.Run("packed", func(b *testing.B) { g.packed(b, src) })
	for _, p := range []device.Ptr{g.keys, g.nodes, g.out} {
		ok(b, d.Free(p))
	}
	ok(b, g.set.Unload())
	ok(b, g.s.Close())
}

func (g *gpu[C]) implicit(b *testing.B, src implicit.Source[C]) {
	t, err := implicit.Build(src, implicit.Config{Pages: arena.HugeAll})
	ok(b, err)
	defer t.Release()
	all, _ := t.Memory()
	base := g.put(b, all)
	defer g.d.Free(base)
	on, err := kernel.NewTree(&t.Tree, base, 0)
	ok(b, err)
	kernel.Favor(g.s, &on)
	g.time(b, len(all), func() error {
		return g.set.Rank(g.s, &g.params, &on, widthOf[C](), g.keys, residentQueries, g.out)
	})
}

func (g *gpu[C]) blocked(b *testing.B, src implicit.Source[C]) {
	t, err := blocked.Build(src, blocked.Config{Config: implicit.Config{Pages: arena.HugeAll}})
	ok(b, err)
	defer t.Release()
	all, _ := t.Memory()
	base := g.put(b, all)
	defer g.d.Free(base)
	leaves, err := kernel.NewTree(t.Leaves(), base, 0)
	ok(b, err)
	leaves.Start = g.nodes
	var rows []kernel.Row
	for _, r := range t.Rows() {
		rows = append(rows, kernel.Row(r))
	}
	on, err := kernel.NewBlocked(rows, widthOf[C](), t.Leaves(), base)
	ok(b, err)
	kernel.FavorBlocked(g.s, &on)
	g.time(b, len(all), func() error {
		if err := g.set.BlockedDown(g.s, &g.params, &on, widthOf[C](), g.keys, residentQueries, g.nodes); err != nil {
			return err
		}
		return g.set.Rank(g.s, &g.params, &leaves, widthOf[C](), g.keys, residentQueries, g.out)
	})
}

func (g *gpu[C]) packed(b *testing.B, src implicit.Source[C]) {
	t, err := blocked.BuildPacked(src, implicit.Config{Pages: arena.HugeAll})
	ok(b, err)
	defer t.Release()
	all, _ := t.Memory()
	base, at := g.put(b, all), t.Places()
	defer g.d.Free(base)
	top, err := kernel.NewTree(&t.Top().Tree, base, 0)
	ok(b, err)
	pages, err := kernel.NewPacked(base+device.Ptr(at.Table), base+device.Ptr(at.Words), at.Last+1, at.End, at.Len)
	ok(b, err)
	kernel.Favor(g.s, &top)
	g.time(b, len(all), func() error {
		if err := g.set.Rank(g.s, &g.params, &top, widthOf[C](), g.keys, residentQueries, g.nodes); err != nil {
			return err
		}
		return g.set.PackedRank(g.s, &g.params, &pages, widthOf[C](), g.keys, residentQueries, g.nodes, g.out)
	})
}

// time reports the best of all rounds, and the size of the tree.
func (g *gpu[C]) time(b *testing.B, bytes int, run func() error) {
	b.Helper()
	before, err := g.d.NewEvent()
	ok(b, err)
	after, err := g.d.NewEvent()
	ok(b, err)
	best := 0.0
	for b.Loop() {
		ok(b, g.s.Record(before))
		ok(b, run())
		ok(b, g.s.Record(after))
		ok(b, after.Synchronize())
		ms, err := after.Since(before)
		ok(b, err)
		if best == 0 || ms < best {
			best = ms
		}
	}
	b.ReportMetric(residentQueries/best/1e6, "Gq/s")
	b.ReportMetric(float64(bytes)/residentKeys, "B/key")
	ok(b, before.Close())
	ok(b, after.Close())
}
