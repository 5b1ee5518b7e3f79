package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// small is a tree for tests, with the data it was made from.
type small[C simd.Code] struct {
	*implicit.Tree[C]
	keys, vals []C
	leaves     implicit.Leaves
}

func smallTree[C simd.Code](t *testing.T, leaves implicit.Leaves, rng *rand.Rand) small[C] {
	t.Helper()
	return treeWith[C](t, leaves, widthOf[C]()/8, rng)
}

// treeWith makes a tree with values of valBytes bytes; vals is right only if
// that is the size of the keys.
func treeWith[C simd.Code](t *testing.T, leaves implicit.Leaves, valBytes int, rng *rand.Rand) small[C] {
	t.Helper()
	w := widthOf[C]()
	n := []int{1, 3, 4, 5, 8, 9, 36, 37, 64, 128, 129, 600, 1153, 2500}[rng.IntN(14)]
	s := small[C]{keys: keySet[C](n, rng), vals: make([]C, n, 2*n), leaves: leaves} // room for wider values
	for i := range s.vals {
		s.vals[i] = C(i)*7 + 1
	}
	var err error
	s.Tree, err = implicit.Build(layout.Source[C]{Len: n, Codes: s.keys, Vals: unsafe.Pointer(&s.vals[0])},
		implicit.Config{Leaves: leaves, ValSize: valBytes, Fanout: 512/w + rng.IntN(2)})
	must(t, err)
	return s
}

func TestSearchesBeginAndEndAnywhere(t *testing.T) {
	seeds := 100
	if !seed.Long() {
		seeds = 15
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		beginAnywhere[uint32](t, d, rng)
		beginAnywhere[uint64](t, d, rng)
	})
}

// beginAnywhere lets the CPU take queries to one level, some of them one level
// further, and the kernels from there to another, or to the end.
func beginAnywhere[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	tree := smallTree[C](t, implicit.Leaves(rng.IntN(2)), rng)
	defer tree.Release()
	asked := questions(tree.keys, 1+rng.IntN(150), rng)
	p := upload(t, d, tree.Tree)
	defer p.close(t)
	to := rng.IntN(tree.Depth() + 1)
	from := rng.IntN(to + 1)
	deep := 0
	if from < to {
		deep = rng.IntN(len(asked)/32+1) * 32
	}
	if from > 0 || deep > 0 {
		p.tree.Start = p.put(t, arena.Bytes(tree.nodes(asked, from, deep)))
		p.tree.From, p.tree.Deep = uint32(from), uint32(deep)
	}
	what := fmt.Sprintf("%s, %d bits, %d keys, from level %d, %d one further, to %d", d.Info().Name, widthOf[C](), len(tree.keys), from, deep, to)
	p.compare(t, what, tree.keys, tree.vals, asked, tree.leaves)

	p.tree.Levels = uint32(to)
	got, _ := p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
		return p.set.Down(p.s, &p.params, &p.tree, widthOf[C](), k, n, out)
	})
	if want := arena.Bytes(tree.nodes(asked, to, 0)); !bytes.Equal(got, want) {
		t.Fatalf("%s: queries come to the wrong nodes", what)
	}
}

// nodes returns the node that each key leads to on a level; the first deep of
// them go one level further.
func (s small[C]) nodes(keys []C, level, deep int) []uint32 {
	places := make([]int, len(keys))
	s.Descend(0, level, keys, places)
	if deep > 0 {
		s.Descend(0, level+1, keys[:deep], places)
	}
	nodes := make([]uint32, len(keys))
	for i, p := range places {
		nodes[i] = uint32(p / 8)
	}
	return nodes
}

// put copies bytes to the device.
func (p *place[C]) put(t *testing.T, b []byte) device.Ptr {
	t.Helper()
	at := p.alloc(t, len(b))
	must(t, p.s.CopyIn(at, b))
	must(t, p.s.Synchronize())
	return at
}

func TestEntries(t *testing.T) {
	seeds := 100
	if !seed.Long() {
		seeds = 15
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		for _, leaves := range []implicit.Leaves{implicit.Pairs, implicit.Apart} {
			entries[uint32](t, d, leaves, rng)
			entries[uint64](t, d, leaves, rng)
		}
	})
}

// entries copies random runs, some of them empty, out of a tree.
func entries[C simd.Code](t *testing.T, d device.Device, leaves implicit.Leaves, rng *rand.Rand) {
	tree := smallTree[C](t, leaves, rng)
	defer tree.Release()
	p := upload(t, d, tree.Tree)
	defer p.close(t)
	if leaves == implicit.Pairs {
		p.tree.Vals = 0
	}
	var first, offsets []uint32
	var keys, vals []C
	for range 1 + rng.IntN(60) {
		lo := rng.IntN(len(tree.keys))
		hi := min(len(tree.keys), lo+rng.IntN(20)*rng.IntN(2))
		first, offsets = append(first, uint32(lo)), append(offsets, uint32(len(keys)))
		keys, vals = append(keys, tree.keys[lo:hi]...), append(vals, tree.vals[lo:hi]...)
	}
	if len(keys) == 0 {
		return
	}
	w, size := widthOf[C](), len(arena.Bytes(keys))
	k, v := p.alloc(t, size), p.alloc(t, size)
	must(t, p.set.Entries(p.s, &p.params, &p.tree, w, w, p.put(t, arena.Bytes(first)), p.put(t, arena.Bytes(offsets)), len(first), len(keys), k, v))
	gotKeys, gotVals := make([]C, len(keys)), make([]C, len(keys))
	must(t, p.s.CopyOut(arena.Bytes(gotKeys), k))
	must(t, p.s.CopyOut(arena.Bytes(gotVals), v))
	must(t, p.s.Synchronize())
	if !slices.Equal(gotKeys, keys) || !slices.Equal(gotVals, vals) {
		t.Fatalf("%s, %d bits, %v, %d keys: runs %d to %d: got %d, %d; want %d, %d",
			d.Info().Name, w, leaves, len(tree.keys), first, offsets, gotKeys, gotVals, keys, vals)
	}
}

// Every kernel, run on the interpreter and on a GPU with the same memory,
// leaves the same memory behind, byte by byte: also where it should not write.
func TestGPUEqualsInterpreter(t *testing.T) {
	g, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	defer g.Close()
	start := seed.Of(t)
	for s := range uint64(60) {
		d := ptx.New(ptx.Seed(start+s), ptx.Memory(64<<20))
		for _, run := range []func(device.Device) []named{
			func(d device.Device) []named { return everyKernel[uint32](t, d, implicit.Pairs, 4, start+s) },
			func(d device.Device) []named { return everyKernel[uint32](t, d, implicit.Apart, 4, start+s) },
			func(d device.Device) []named { return everyKernel[uint32](t, d, implicit.Apart, 8, start+s) },
			func(d device.Device) []named { return everyKernel[uint64](t, d, implicit.Pairs, 8, start+s) },
			func(d device.Device) []named { return everyKernel[uint64](t, d, implicit.Apart, 4, start+s) },
			func(d device.Device) []named { return everyKernel[uint64](t, d, implicit.Apart, 8, start+s) },
			func(d device.Device) []named { return everyBlocked[uint32](t, d, start+s) },
			func(d device.Device) []named { return everyBlocked[uint64](t, d, start+s) },
		} {
			want, got := run(d), run(g)
			for i := range want {
				if !bytes.Equal(got[i].memory, want[i].memory) {
					t.Fatalf("seed %d: %s leaves other memory behind on the GPU", start+s, want[i].kernel)
				}
			}
		}
		must(t, d.Close())
	}
}

type named struct {
	kernel string
	memory []byte
}

// everyKernel runs all kernels that suit a tree on a device, each with outputs
// filled beforehand and room behind, and returns the memory of the outputs.
func everyKernel[C simd.Code](t *testing.T, d device.Device, leaves implicit.Leaves, valBytes int, seed uint64) (out []named) {
	rng := rand.New(rand.NewPCG(seed, 7))
	tree := treeWith[C](t, leaves, valBytes, rng)
	defer tree.Release()
	asked := questions(tree.keys, 1+rng.IntN(300), rng)
	p := upload(t, d, tree.Tree)
	defer p.close(t)
	if leaves == implicit.Pairs {
		p.tree.Vals = 0
	}
	w, v, n, keys := widthOf[C](), 8*valBytes, len(asked), p.put(t, arena.Bytes(asked))
	run := func(kernel string, launch func(a, b device.Ptr) error) {
		out = append(out, p.dirty(t, kernel, 8*n+64, rng.Uint32(), launch))
	}
	name := fmt.Sprintf(" of %d bits, %v, values of %d bits", w, leaves, v)
	searches := func(name string) {
		run("rank"+name, func(a, _ device.Ptr) error { return p.set.Rank(p.s, &p.params, &p.tree, p.signs, w, keys, n, a) })
		run("find"+name, func(a, _ device.Ptr) error { return p.set.Find(p.s, &p.params, &p.tree, p.signs, w, keys, n, a) })
		if leaves == implicit.Pairs {
			run("pairs"+name, func(a, b device.Ptr) error { return p.set.Pairs(p.s, &p.params, &p.tree, p.signs, w, keys, n, a, b) })
		} else {
			run("apart"+name, func(a, b device.Ptr) error { return p.set.Apart(p.s, &p.params, &p.tree, p.signs, w, v, keys, n, a, b) })
		}
	}
	searches(name)
	run("down"+name, func(a, _ device.Ptr) error { return p.set.Down(p.s, &p.params, &p.tree, w, keys, n, a) })
	p.sign(t, tree.Tree)
	out = append(out, named{"signs" + name, p.get(t, p.signs.Base, p.signs.Bytes()+4)})
	searches(name + ", by signs")
	first := binary.LittleEndian.AppendUint32(nil, uint32(rng.IntN(len(tree.keys))))
	total := min(n, len(tree.keys)-int(binary.LittleEndian.Uint32(first)))
	run("entries"+name, func(a, b device.Ptr) error {
		return p.set.Entries(p.s, &p.params, &p.tree, w, v, p.put(t, first), p.put(t, make([]byte, 4)), 1, total, a, b)
	})
	return out
}
