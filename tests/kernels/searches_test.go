// Package kernels tries the kernels of layouts on trees of theirs. It is apart from
// package kernel, whose own tests have a way into it: with them the layouts
// would be compiled once more.
package kernels

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// onEach runs a test on the interpreter under several seeds, and on a GPU if
// there is one.
func onEach(t *testing.T, seeds int, test func(t *testing.T, d device.Device, rng *rand.Rand)) {
	first := seed.Of(t)
	for i := range uint64(seeds) {
		d := ptx.New(ptx.Seed(first+i), ptx.Memory(64<<20))
		test(t, d, rand.New(rand.NewPCG(first+i, 0)))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := cuda.Open(0)
	if err != nil {
		t.Logf("no GPU: %v", err)
		return
	}
	defer d.Close()
	for i := range uint64(seeds) {
		test(t, d, rand.New(rand.NewPCG(first+i, 0)))
	}
}

// place is a tree on a device.
type place[C simd.Code] struct {
	d      device.Device
	s      device.Stream
	set    *kernel.Set
	tree   kernel.Tree
	signs  *kernel.Signs
	params kernel.Params
	mem    []device.Ptr
}

// fewBlocks is a stream of a small device: a launch has so many blocks at most,
// 0 for no bound. Queries beyond them come in further rounds.
type fewBlocks struct {
	device.Stream
	most int
}

func (s fewBlocks) Launch(k device.Kernel, g device.Grid, params []byte) error {
	if s.most > 0 {
		g.Blocks = min(g.Blocks, s.most)
	}
	return s.Stream.Launch(k, g, params)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place[C]) alloc(t *testing.T, bytes int) device.Ptr {
	t.Helper()
	ptr, err := p.d.Alloc(max(bytes, 4))
	must(t, err)
	p.mem = append(p.mem, ptr)
	return ptr
}

func (p *place[C]) close(t *testing.T) {
	must(t, p.s.Close())
	for _, m := range p.mem {
		must(t, p.d.Free(m))
	}
	must(t, p.set.Unload())
}

// newPlace returns a place on a device with kernels of some sources beside those of every tree.
func newPlace[C simd.Code](t *testing.T, d device.Device, more ...kernel.Source) *place[C] {
	t.Helper()
	p := &place[C]{d: d}
	var err error
	p.s, err = d.NewStream()
	must(t, err)
	p.set, err = kernel.Load(d, more...)
	must(t, err)
	return p
}

func upload[C simd.Code](t *testing.T, d device.Device, tree *implicit.Tree[C]) *place[C] {
	t.Helper()
	p := newPlace[C](t, d, kernel.SignsSource)
	all, vals := tree.Memory()
	base := p.alloc(t, len(all))
	must(t, p.s.CopyIn(base, all))
	var err error
	p.tree, err = kernel.NewTree(&tree.Tree, base, base+device.Ptr(vals))
	must(t, err)
	return p
}

// ask runs a kernel over keys and returns its outputs. withBits says whether it
// writes found bits: what a kernel leaves alone is not read.
func (p *place[C]) ask(t *testing.T, keys []C, outBytes int, withBits bool, launch func(keys device.Ptr, n int, out, bits device.Ptr) error) (out, bits []byte) {
	t.Helper()
	in := p.alloc(t, len(arena.Bytes(keys)))
	o, b := p.alloc(t, outBytes*len(keys)), p.alloc(t, (len(keys)+31)/32*4)
	out, bits = make([]byte, outBytes*len(keys)), make([]byte, (len(keys)+31)/32*4)
	must(t, p.s.CopyIn(in, arena.Bytes(keys)))
	must(t, launch(in, len(keys), o, b))
	must(t, p.s.CopyOut(out, o))
	if withBits {
		must(t, p.s.CopyOut(bits, b))
	}
	must(t, p.s.Synchronize())
	return out, bits
}

func widthOf[C simd.Code]() int {
	var c C
	return 8 * int(unsafe.Sizeof(c))
}

func keySet[C simd.Code](n int, rng *rand.Rand) []C {
	keys := make([]C, n)
	kind := rng.IntN(4)
	for i := range keys {
		switch kind {
		case 0:
			keys[i] = C(rng.Uint64())
		case 1:
			keys[i] = C(rng.IntN(4)) - 2
		case 2:
			keys[i] = C(rng.IntN(n/5 + 1))
		case 3:
			keys[i] = ^C(0) - C(rng.IntN(2*n))
		}
	}
	slices.Sort(keys)
	return keys
}

func questions[C simd.Code](keys []C, n int, rng *rand.Rand) []C {
	asked := make([]C, n)
	for i := range asked {
		asked[i] = C(rng.Uint64())
		if len(keys) > 0 && rng.IntN(4) > 0 {
			asked[i] = keys[rng.IntN(len(keys))] + C(rng.IntN(3)) - 1
		}
	}
	return append(asked[:n-min(n, 2)], []C{0, ^C(0)}[:min(n, 2)]...)
}

func TestSearches(t *testing.T) {
	seeds := 200
	if !seed.Long() {
		seeds = 20
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		searches[uint32](t, d, rng)
		searches[uint64](t, d, rng)
	})
}

func searches[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	n := []int{0, 1, 3, 4, 5, 8, 9, 36, 37, 64, 128, 129, 600, 1153, 2500}[rng.IntN(15)]
	keys := keySet[C](n, rng)
	asked := questions(keys, 1+rng.IntN(150), rng)
	w := widthOf[C]()
	for _, leaves := range []implicit.Leaves{implicit.Pairs, implicit.Apart} {
		vals := make([]C, n+1)
		for i := range vals {
			vals[i] = C(i)*7 + 1
		}
		fanout := 512/w + rng.IntN(2)
		tree, err := implicit.Build(layout.Source[C]{Len: n, Codes: keys, Vals: unsafe.Pointer(&vals[0])},
			implicit.Config{Leaves: leaves, ValSize: w / 8, Fanout: fanout})
		must(t, err)
		p := upload(t, d, tree)
		what := fmt.Sprintf("%s, %d bits, %v, fanout %d, %d keys, %d asked", d.Info().Name, w, leaves, fanout, n, len(asked))
		p.compare(t, what, keys, vals, asked, leaves)
		if n > 0 {
			p.sign(t, tree)
			p.compare(t, what+", by signs", keys, vals, asked, leaves)
		}
		p.close(t)
		tree.Release()
	}
}

func (p *place[C]) compare(t *testing.T, what string, keys, vals, asked []C, leaves implicit.Leaves) {
	t.Helper()
	w := widthOf[C]()
	ranks, _ := p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
		return p.set.Rank(p.s, &p.params, &p.tree, p.signs, w, k, n, out)
	})
	finds, _ := p.ask(t, asked, 4, false, func(k device.Ptr, n int, out, _ device.Ptr) error {
		return p.set.Find(p.s, &p.params, &p.tree, p.signs, w, k, n, out)
	})
	got, bits := p.ask(t, asked, w/8, true, func(k device.Ptr, n int, out, bits device.Ptr) error {
		if leaves == implicit.Pairs {
			return p.set.Pairs(p.s, &p.params, &p.tree, p.signs, w, k, n, out, bits)
		}
		return p.set.Apart(p.s, &p.params, &p.tree, p.signs, w, w, k, n, out, bits)
	})
	for i, k := range asked {
		rank := sort.Search(len(keys), func(j int) bool { return keys[j] >= k })
		hit := rank < len(keys) && keys[rank] == k
		place, val := uint32(kernel.NotFound), C(0)
		if hit {
			place, val = uint32(rank), vals[rank]
		}
		if r := binary.LittleEndian.Uint32(ranks[4*i:]); r != uint32(rank) {
			t.Fatalf("%s: query %d: rank of %d is %d, want %d", what, i, k, r, rank)
		}
		if r := binary.LittleEndian.Uint32(finds[4*i:]); r != place {
			t.Fatalf("%s: query %d: %d found at %d, want %d", what, i, k, r, place)
		}
		if v := *(*C)(unsafe.Pointer(&got[i*w/8])); v != val || bits[i/8]>>(i%8)&1 == 1 != hit {
			t.Fatalf("%s: query %d: value of %d is %d, %v; want %d, %v", what, i, k, v, bits[i/8]>>(i%8)&1, val, hit)
		}
	}
	for i := len(asked); i < 8*len(bits); i++ {
		if bits[i/8]>>(i%8)&1 == 1 {
			t.Fatalf("%s: found bit %d is set behind the last query", what, i)
		}
	}
}
