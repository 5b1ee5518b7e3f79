package simd

import (
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// A search reads the lines of its nodes and its keys, and nothing past them:
// each region may lie at the very end of memory.
func TestRegularReadsNothingBehindTheEnd(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, regularInside[uint32], regularInside[uint64])
	})
}

func regularInside[C Code](t *testing.T) {
	rng := seed.Rand(t)
	room := func(n int) []uint64 { return guarded(t, n) }
	all := unsafe.Slice((*C)(unsafe.Pointer(&room(longest)[0])), longest*8/unsafe.Sizeof(C(0)))
	for _, fans := range regularForms() {
		g := grow[C](fans, 1+rng.IntN(3000), rng, room)
		asks := g.asks(longest)
		for _, n := range lengths() {
			keys := all[len(all)-n:]
			copy(keys, asks)
			if err := g.check(keys, g.answers(keys)); err != nil {
				t.Fatalf("form %v, batch of %d: %v", fans, n, err)
			}
		}
	}
}

// A search that meets nodes that are being reused reads anything at all, but
// stays within the regions as long as references do.
func TestRegularSearchOfGarbageStaysInside(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, garbageInside[uint32], garbageInside[uint64])
	})
}

func garbageInside[C Code](t *testing.T) {
	rng := seed.Rand(t)
	g := grow[C]([]int{2, 2, 2}, 100, rng, func(n int) []uint64 { return guarded(t, n) })
	const uppers = 1 + 2 + 4 // leaves are one more
	places, again := make([]uint64, longest), make([]int32, longest)
	for range 200 {
		few := rng.Uint64() // sometimes all keys are the same, or above all separators
		for _, region := range g.regions {
			for i := range region {
				if region[i] = rng.Uint64(); rng.IntN(4) == 0 {
					region[i] = few
				}
			}
		}
		for x := range uppers {
			refs := RegularRefs[C](unsafe.Add(g.Uppers, x*RegularUpper[C]()))
			for i := range refs {
				refs[i] = rng.Uint32N(uppers)
			}
		}
		g.Height, g.Distance, g.Root = uint64(rng.IntN(6)), uint64(1+rng.IntN(40)), rng.Uint64N(uppers)
		keys := g.asks(longest)
		for i := range keys {
			if rng.IntN(4) == 0 {
				keys[i] = ^C(0)
			}
			if leaf, line, _ := SeekRegular(&g.Regular, keys[i]); leaf >= uppers || line < 0 || line > RegularFanout {
				t.Fatalf("SeekRegular leads to leaf %d, line %d", leaf, line)
			}
		}
		PlaceRegular(&g.Regular, keys, places)
		for _, p := range places {
			if p>>8 >= uppers || p&255 > RegularFanout {
				t.Fatalf("PlaceRegular leads to %#x", p)
			}
		}
		if hits, repeat := GetRegular(&g.Regular, keys, make([]C, longest), make([]bool, longest), again); hits+repeat > longest {
			t.Fatalf("%d hits and %d again of %d", hits, repeat, longest)
		}
	}
}
