package kernels

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// pages is packed pages in the simplest way: bit by bit.
type pages[C simd.Code] struct {
	keys  []C
	table []uint64 // least key, then offset and width, per page
	words []uint64
}

const (
	groupKeys = 16
	pageKeys  = groupKeys * groupKeys
)

// newPages packs random keys: pages of all widths, some wider than necessary.
func newPages[C simd.Code](rng *rand.Rand) *pages[C] {
	n := []int{1, 2, 15, 16, 17, 255, 256, 257, 700, 1024, 1500}[rng.IntN(11)]
	k := &pages[C]{keys: stepped[C](n, rng)}
	for lo := 0; lo < n; lo += pageKeys {
		k.add(k.keys[lo:min(lo+pageKeys, n)], rng)
	}
	return k
}

// stepped returns keys with steps of another size every few hundred.
func stepped[C simd.Code](n int, rng *rand.Rand) []C {
	if rng.IntN(2) == 0 {
		return keySet[C](n, rng)
	}
	keys, at, step := make([]C, n), C(0), uint64(1)
	for i := range keys {
		if i%200 == 0 {
			step = 1 << rng.IntN(widthOf[C]()-12)
		}
		at += min(C(rng.Uint64N(step)), ^C(0)-at)
		keys[i] = at
	}
	return keys
}

// add packs a page: the greatest difference of each group, then all
// differences.
func (k *pages[C]) add(keys []C, rng *rand.Rand) {
	width := bits.Len64(uint64(keys[len(keys)-1] - keys[0]))
	if rng.IntN(3) == 0 {
		width = min(width+rng.IntN(8), max(width, 32))
	}
	if width > 32 {
		width = 64
	}
	k.table = append(k.table, uint64(keys[0]), uint64(len(k.words))<<8|uint64(width))
	first := len(k.words)
	k.words = append(k.words, make([]uint64, ((groupKeys+pageKeys)*width+63)/64)...)
	put := func(i int, d uint64) {
		for b := range width {
			at := i*width + b
			k.words[first+at/64] |= d >> b & 1 << (at % 64)
		}
	}
	for i := range pageKeys {
		d := uint64(keys[min(i, len(keys)-1)] - keys[0])
		put(groupKeys+i, d)
		if i%groupKeys == groupKeys-1 {
			put(i/groupKeys, d)
		}
	}
}

func (k *pages[C]) upload(t *testing.T, p *place[C]) kernel.Packed {
	t.Helper()
	d, err := kernel.NewPacked(p.put(t, arena.Bytes(k.table)), p.put(t, arena.Bytes(k.words)), len(k.table)/2, len(k.words), len(k.keys))
	must(t, err)
	return d
}

// pagesOf returns the first page whose greatest key is not below each key; one
// behind the last where there is none.
func (k *pages[C]) pagesOf(asked []C) []uint32 {
	of := make([]uint32, len(asked))
	for i, q := range asked {
		for at := pageKeys; at-pageKeys < len(k.keys) && k.keys[min(at, len(k.keys))-1] < q; at += pageKeys {
			of[i]++
		}
	}
	return of
}

func TestPacked(t *testing.T) {
	seeds := 200
	if !seed.Long() {
		seeds = 15
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		packedSearches[uint32](t, d, rng)
		packedSearches[uint64](t, d, rng)
	})
}

func packedSearches[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	k, w := newPages[C](rng), widthOf[C]()
	p := newPlace[C](t, d, kernel.BlockedSource)
	defer p.close(t)
	on := k.upload(t, p)
	asked := questions(k.keys, 1+rng.IntN(300), rng)
	n := len(asked)
	keys := p.put(t, arena.Bytes(asked))
	p.s = fewBlocks{p.s, rng.IntN(3)}
	ask := func(launch func(pages, out device.Ptr) error) []uint32 {
		from := p.put(t, arena.Bytes(k.pagesOf(asked)))
		to := from // in place, or not
		if rng.IntN(2) == 0 {
			to = p.alloc(t, 4*n)
		}
		must(t, launch(from, to))
		return slices.Clone(arena.As[uint32](p.get(t, to, 4*n)))
	}
	ranks := ask(func(pages, out device.Ptr) error {
		return p.set.PackedRank(p.s, &p.params, &on, w, keys, n, pages, out)
	})
	places := ask(func(pages, out device.Ptr) error {
		return p.set.PackedFind(p.s, &p.params, &on, w, keys, n, pages, out)
	})
	what := fmt.Sprintf("%s, %d bits, %d keys", d.Info().Name, w, len(k.keys))
	for i, q := range asked {
		rank := sort.Search(len(k.keys), func(j int) bool { return k.keys[j] >= q })
		place := uint32(kernel.NotFound)
		if rank < len(k.keys) && k.keys[rank] == q {
			place = uint32(rank)
		}
		if ranks[i] != uint32(rank) || places[i] != place {
			t.Fatalf("%s: query %d, %d: rank %d, want %d; place %d, want %d", what, i, q, ranks[i], rank, places[i], place)
		}
	}
}

// Whatever table and words hold, no search leaves them: the interpreter would
// report it.
func TestDamagedPages(t *testing.T) {
	onEach(t, seed.Times(10, 40), func(t *testing.T, d device.Device, rng *rand.Rand) {
		damagedPages[uint32](t, d, rng)
		damagedPages[uint64](t, d, rng)
	})
}

func damagedPages[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	k, w := newPages[C](rng), widthOf[C]()
	for i := range k.table {
		if rng.IntN(2) == 0 {
			k.table[i] = rng.Uint64() >> rng.IntN(64)
		}
	}
	p := newPlace[C](t, d, kernel.BlockedSource)
	defer p.close(t)
	on := k.upload(t, p)
	asked := questions(k.keys, 100, rng)
	keys, n, out := p.put(t, arena.Bytes(asked)), len(asked), p.alloc(t, 400)
	pages := k.pagesOf(asked)
	for i := range pages {
		pages[i] += rng.Uint32() >> rng.IntN(32)
	}
	at := p.put(t, arena.Bytes(pages))
	must(t, p.set.PackedRank(p.s, &p.params, &on, w, keys, n, at, out))
	must(t, p.set.PackedFind(p.s, &p.params, &on, w, keys, n, at, out))
	p.get(t, out, 400)
}

// Without entries there is no page to search.
func TestPackedEmpty(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d device.Device, _ *rand.Rand) {
		p := newPlace[uint32](t, d, kernel.BlockedSource)
		defer p.close(t)
		on, err := kernel.NewPacked(0, 0, 0, 0, 0)
		must(t, err)
		const n = 33
		in, out := p.put(t, make([]byte, 4*n)), p.alloc(t, 4*n)
		must(t, p.set.PackedRank(p.s, &p.params, &on, 32, in, n, in, out))
		if got := arena.As[uint32](p.get(t, out, 4*n)); !slices.Equal(got, make([]uint32, n)) {
			t.Errorf("ranks %d", got)
		}
		must(t, p.set.PackedFind(p.s, &p.params, &on, 32, in, n, in, out))
		if got := arena.As[uint32](p.get(t, out, 4*n)); !slices.Equal(got, slices.Repeat([]uint32{kernel.NotFound}, n)) {
			t.Errorf("places %d", got)
		}
	})
}
