package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// mirrorCase is nodes as a mirror has them: some upper nodes whose references
// lead anywhere, and pilots of leaves anywhere.
type mirrorCase[C simd.Code] struct {
	rng            *rand.Rand
	uppers, pilots [][]byte
	root, height   uint32
	span           C
}

// node draws an inner node of so many bytes.
func (c *mirrorCase[C]) node(size int, low C) []byte {
	b := arena.Bytes(make([]uint64, size/8))
	at := unsafe.Pointer(&b[0])
	seps := simd.RegularSeps[C](at)
	for i := range seps {
		seps[i] = low + C(c.rng.Uint64N(uint64(c.span)))
		if c.rng.IntN(40) == 0 {
			seps[i] = ^C(0)
		}
	}
	slices.Sort(seps[:])
	index, per := simd.RegularIndex[C](at), simd.LineBytes/int(unsafe.Sizeof(low))
	for i := range index {
		index[i] = ^C(0)
		if last := (i+1)*per - 1; last < len(seps)-1 {
			index[i] = seps[last]
		}
	}
	*simd.RegularWord(at) = ^uint64(0)
	return b
}

func newMirrorCase[C simd.Code](rng *rand.Rand) *mirrorCase[C] {
	c := &mirrorCase[C]{rng: rng, height: uint32(rng.IntN(4)), span: 1000}
	if rng.IntN(2) == 0 {
		c.span = ^C(0) / 2
	}
	for range 1 + rng.IntN(5) {
		b := c.node(bplus.UpperImage[C](), 0)
		for i := range simd.RegularRefs[C](unsafe.Pointer(&b[0])) {
			simd.RegularRefs[C](unsafe.Pointer(&b[0]))[i] = uint32(rng.IntN(12)) // some of them are too high
		}
		c.uppers = append(c.uppers, b)
	}
	for i := range 1 + rng.IntN(8) {
		low := C(rng.Uint64N(uint64(c.span)))
		b := c.node(bplus.PilotImage[C](), low)
		*(*bplus.MirrorInfo)(unsafe.Pointer(&b[simd.LineBytes])) = bplus.MirrorInfo{
			Word: rng.Uint64() &^ simd.WordBusy, Low: uint64(low), Leaf: rng.Uint32(), First: uint32(min(i, 1)),
		}
		c.pilots = append(c.pilots, b)
	}
	c.root = uint32(rng.IntN(5))
	return c
}

// want returns the place of a key, and the word to go with it; 5 for a word that
// says that nothing is known.
func (c *mirrorCase[C]) want(key C) (place, word uint64) {
	below := func(b []byte) (n int) {
		for _, s := range simd.RegularSeps[C](unsafe.Pointer(&b[0])) {
			if s < key {
				n++
			}
		}
		return n
	}
	x := c.root
	for range c.height {
		u := c.uppers[min(x, uint32(len(c.uppers)-1))]
		x = simd.RegularRefs[C](unsafe.Pointer(&u[0]))[min(below(u), simd.RegularFanout-1)]
	}
	p := c.pilots[min(x, uint32(len(c.pilots)-1))]
	in, line := (*bplus.MirrorInfo)(unsafe.Pointer(&p[simd.LineBytes])), below(p)
	place, word = uint64(in.Leaf)<<8|uint64(line), in.Word
	if line == simd.RegularFanout || in.First != 1 && key <= C(in.Low) {
		word = 5
	}
	return place, word
}

// put copies the nodes to a mirror, in any order.
func (c *mirrorCase[C]) put(t *testing.T, p *place[C]) kernel.Mirror {
	upper, pilot := bplus.UpperImage[C](), bplus.PilotImage[C]()
	m := kernel.Mirror{
		UpperCount: uint32(len(c.uppers)), PilotCount: uint32(len(c.pilots)), Root: c.root, Height: c.height,
		UpperLines: uint32(upper / simd.LineBytes), PilotLines: uint32(pilot / simd.LineBytes),
	}
	m.Uppers = p.alloc(t, len(c.uppers)*upper+len(c.pilots)*pilot)
	m.Pilots = m.Uppers + device.Ptr(len(c.uppers)*upper)
	var moves []uint32
	var nodes []byte
	for _, i := range c.rng.Perm(len(c.uppers) + len(c.pilots)) {
		from := uint32(len(nodes) / simd.LineBytes)
		if i < len(c.uppers) {
			moves, nodes = append(moves, uint32(i)*m.UpperLines, from), append(nodes, c.uppers[i]...)
			continue
		}
		i -= len(c.uppers)
		line := m.UpperCount*m.UpperLines + uint32(i)*m.PilotLines
		moves, nodes = append(moves, line, from), append(nodes, c.pilots[i]...)
	}
	list, from := p.put(t, arena.Bytes(moves)), p.put(t, nodes)
	must(t, p.set.MirrorScatter(p.s, &p.params, &m, from, list, len(moves)/2))
	must(t, p.s.Synchronize())
	return m
}

func checkMirror[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	c := newMirrorCase[C](rng)
	p := newPlace[C](t, d, kernel.MirrorSource)
	defer p.close(t)
	m := c.put(t, p)
	keys := []C{0, ^C(0), ^C(0) - 1}
	for range rng.IntN(120) {
		keys = append(keys, C(rng.Uint64N(uint64(c.span)))*C(1+rng.IntN(2)))
	}
	for _, b := range c.pilots {
		low := C((*bplus.MirrorInfo)(unsafe.Pointer(&b[simd.LineBytes])).Low)
		keys = append(keys, low, low+1, simd.RegularSeps[C](unsafe.Pointer(&b[0]))[simd.RegularFanout-1])
	}
	n := len(keys)
	in, out := p.put(t, arena.Bytes(keys)), p.alloc(t, 16*n)
	must(t, p.set.MirrorFind(p.s, &p.params, &m, widthOf[C](), in, n, out, out+device.Ptr(8*n)))
	got := make([]uint64, 2*n)
	must(t, p.s.CopyOut(arena.Bytes(got), out))
	must(t, p.s.Synchronize())
	for i, k := range keys {
		if place, word := c.want(k); got[i] != place || got[n+i] != word {
			t.Fatalf("key %d of %d bits, height %d: place %x, word %x, want %x, %x", k, widthOf[C](), c.height, got[i], got[n+i], place, word)
		}
	}
}

// The GPU comes to the same pilot and line as the definition, whatever is in the
// mirror, and says so only of keys that are the pilot's.
func TestMirror(t *testing.T) {
	onEach(t, seed.Count(60), func(t *testing.T, d device.Device, rng *rand.Rand) {
		checkMirror[uint64](t, d, rng)
		checkMirror[uint32](t, d, rng)
	})
}
