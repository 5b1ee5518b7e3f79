package kernels

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
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packed"
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
	src := layout.Source[C]{Len: len(keys), Codes: keys}
	for _, lay := range []layout.Numbers[C]{implicit.Layout[C]{}, blocked.Layout[C]{}, packed.Layout[C]{}} {
		b.Run(string(lay.Name()), func(b *testing.B) { g.rank(b, lay, src) })
	}
	for _, p := range []device.Ptr{g.keys, g.nodes, g.out} {
		ok(b, d.Free(p))
	}
	ok(b, g.set.Unload())
	ok(b, g.s.Close())
}

// rank puts a tree of a layout on the device and times its ranks.
func (g *gpu[C]) rank(b *testing.B, lay layout.Numbers[C], src layout.Source[C]) {
	t, err := lay.Build(src, layout.Config{Pages: arena.HugeAll})
	ok(b, err)
	defer t.Release()
	image := t.(layout.OnDevice).Image()
	base := g.put(b, image.Memory)
	defer g.d.Free(base)
	ok(b, image.Resident.Place(base))
	image.Resident.Favor(g.s)
	launch := &layout.Launch{
		Set: g.set, Stream: g.s, Params: &g.params, Bits: widthOf[C](), N: residentQueries,
		Keys: g.keys, Nodes: g.nodes, To: image.Depth() + 1, Want: layout.WantRanks, Out: g.out,
	}
	g.time(b, len(image.Memory), func() error { return image.Resident.Launch(launch) })
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
