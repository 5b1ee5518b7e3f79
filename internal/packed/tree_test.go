package packed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// model is the simplest thing that could be right.
type model[C simd.Code] []C

func (m model[C]) rank(key C) int {
	return sort.Search(len(m), func(i int) bool { return m[i] >= key })
}

func (m model[C]) find(key C) int {
	if i := m.rank(key); i < len(m) && m[i] == key {
		return i
	}
	return -1
}

func value(place int) uint32 { return uint32(place)*2654435761 + 12345 }

func codeBits[C simd.Code]() int { return 8 * int(unsafe.Sizeof(C(0))) }

func configs() []implicit.Config {
	return []implicit.Config{
		{ValSize: 4, Workers: 2},
		{Distance: 3, Workers: 1},
		{ValSize: 4, Pages: arena.HugeAll},
	}
}

// source returns keys as a source, each with a value of its place.
func source[C simd.Code](keys []C) layout.Source[C] {
	vals := make([]uint32, len(keys)+1)
	for i := range vals {
		vals[i] = value(i)
	}
	src := layout.Source[C]{Len: len(keys), Codes: keys, Vals: unsafe.Pointer(&vals[0])}
	if len(keys)%2 == 1 { // the other way in
		src.Codes, src.Encode = nil, func(dst []C, lo int) { copy(dst, keys[lo:]) }
	}
	return src
}

func build[C simd.Code](t testing.TB, keys []C, cfg implicit.Config) *Tree[C] {
	t.Helper()
	src := source(keys)
	need, err := Survey(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Build(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if took := tree.Stats().TotalBytes; took != need {
		t.Fatalf("%d keys take %d bytes, %d were expected", len(keys), took, need)
	}
	if err := tree.Check(); err != nil {
		t.Fatalf("%d keys, %+v: %v", len(keys), cfg, err)
	}
	return tree
}

func sizes() []int {
	out := []int{0, 1, 2, 3}
	for _, n := range []int{16, 256, 512, 16 * 256, 17 * 256, 17 * 17 * 256} {
		out = append(out, n-1, n, n+1)
	}
	return append(out, 1000, 20_000)
}

// keySets returns key sets of size n that try to break something.
func keySets[C simd.Code](n int, rng *rand.Rand) map[string][]C {
	top := codeBits[C]()
	step := 1 + rng.IntN(1000)
	kinds := map[string]func(i int) C{
		"random":         func(int) C { return C(rng.Uint64()) },
		"all zero":       func(int) C { return 0 },
		"all maximum":    func(int) C { return ^C(0) },
		"ends":           func(int) C { return C(rng.IntN(4)) - 2 }, // 0, 1 and the two greatest
		"few distinct":   func(int) C { return C(rng.IntN(n/300+1)) * 10 },
		"dense":          func(i int) C { return C(i) },
		"dense at end":   func(i int) C { return ^C(0) - C(i) },
		"gaps":           func(i int) C { return C(i*step + rng.IntN(step)) },
		"any magnitude":  func(int) C { return C(rng.Uint64()) >> rng.IntN(top) },
		"runs":           func(i int) C { return C(i/200) << (top - 24) },
		"a lonely giant": func(i int) C { return C(i/(n-n/2+1)) << (top - 1) },
	}
	sets := map[string][]C{}
	for name, kind := range kinds {
		keys := make([]C, n)
		for i := range keys {
			keys[i] = kind(i)
		}
		slices.Sort(keys)
		sets[name] = keys
	}
	return sets
}

// probes returns keys to ask for: hits, misses before, between and after,
// at the borders of pages above all.
func probes[C simd.Code](keys []C, rng *rand.Rand) []C {
	out := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1}
	for range 150 {
		k := C(rng.Uint64())
		if len(keys) > 0 && rng.IntN(8) > 0 {
			at := rng.IntN(len(keys))
			if rng.IntN(2) == 0 {
				at = min(at/256*256+rng.IntN(3), len(keys)-1)
			}
			k = keys[at] + C(rng.IntN(3)) - 1
		}
		out = append(out, k)
	}
	return out
}

func TestAgainstSortedSlice(t *testing.T) {
	t.Run("32 bits", againstModel[uint32])
	t.Run("64 bits", againstModel[uint64])
}

func againstModel[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs() {
		for _, n := range sizes() {
			for name, keys := range keySets[C](n, rng) {
				if n > 1000 && rng.IntN(5) > 0 || !seed.Long() && rng.IntN(10) > 0 {
					continue
				}
				tree := build(t, keys, cfg)
				for _, path := range simd.Paths() {
					undo := simd.Use(path)
					if err := compare(tree, keys, probes(keys, rng)); err != nil {
						t.Fatalf("%v, %d keys %s: %v", path, n, name, err)
					}
					undo()
				}
				tree.Release()
			}
		}
	}
}

func compare[C simd.Code](tree *Tree[C], keys model[C], asked []C) error {
	ranks, finds := make([]int, len(asked)), make([]int, len(asked))
	tree.Rank(asked, ranks)
	tree.Find(asked, finds)
	for i, key := range asked {
		rank, place := keys.rank(key), keys.find(key)
		if ranks[i] != rank || finds[i] != place {
			return fmt.Errorf("key %d has rank %d and is at %d, want %d, %d", key, ranks[i], finds[i], rank, place)
		}
		if r, equal := tree.Seek(key); r != rank || equal != (place >= 0) {
			return fmt.Errorf("Seek(%d) = %d, %v; want %d, %v", key, r, equal, rank, place >= 0)
		}
	}
	if err := compareSteps(tree, asked, ranks, finds); err != nil {
		return err
	}
	return compareEntries(tree, keys)
}

// compareSteps cuts searches at every two levels and asks for the end of it.
func compareSteps[C simd.Code](tree *Tree[C], asked []C, ranks, finds []int) error {
	for first := range tree.Depth() + 1 {
		for second := first; second <= tree.Depth(); second++ {
			places := make([]int, len(asked))
			tree.Descend(0, first, asked, places)
			tree.Descend(first, second, asked, places)
			gotFinds := slices.Clone(places)
			tree.RankFrom(second, asked, places)
			tree.FindFrom(second, asked, gotFinds)
			if !slices.Equal(places, ranks) || !slices.Equal(gotFinds, finds) {
				return fmt.Errorf("cut at levels %d and %d of %d: other results", first, second, tree.Depth())
			}
		}
	}
	return nil
}

func compareEntries[C simd.Code](tree *Tree[C], keys []C) error {
	for lo := 0; lo <= len(keys); lo += 1 + lo/3 {
		for _, n := range []int{0, 1, 15, 16, 17, 300, len(keys)} {
			got := make([]C, min(n, len(keys)-lo))
			tree.CopyKeys(got, lo)
			tree.Prefetch(lo, len(got))
			if !slices.Equal(got, keys[lo:lo+len(got)]) {
				return fmt.Errorf("%d keys from %d on are %v, want %v", n, lo, got, keys[lo:lo+len(got)])
			}
		}
		if lo < len(keys) && tree.Key(lo) != keys[lo] {
			return fmt.Errorf("key %d is %d, want %d", lo, tree.Key(lo), keys[lo])
		}
	}
	if tree.cfg.ValSize == 0 || len(keys) == 0 {
		return nil
	}
	vals := make([]uint32, len(keys))
	tree.CopyVals(arena.Bytes(vals), 0)
	for i, v := range vals {
		if v != value(i) || *(*uint32)(tree.Val(i)) != v {
			return fmt.Errorf("value %d is %d", i, v)
		}
	}
	return nil
}

// Every width there is, in pages before and behind pages of other widths.
func TestWidths(t *testing.T) {
	t.Run("32 bits", widths[uint32])
	t.Run("64 bits", widths[uint64])
}

func widths[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for w := range codeBits[C]() + 1 {
		span := uint64(1)<<w - 1 // 1<<64 is 0
		least := C(0)
		if room := uint64(^C(0)) - span; room > 0 {
			least = C(rng.Uint64N(room))
		}
		keys := make([]C, 256+100)
		for i := range keys {
			keys[i] = least + C(rng.Uint64()&span)
		}
		keys[0], keys[255], keys[256] = least, least+C(span), least+C(span)
		slices.Sort(keys[:256])
		for i := range keys[256:] {
			keys[256+i] = max(keys[255], keys[256+i])
		}
		slices.Sort(keys[256:])
		tree := build(t, keys, implicit.Config{})
		want := uint64(w)
		if w > 32 {
			want = 64
		}
		if got := tree.table()[0].At & 0xff; got != want {
			t.Fatalf("keys up to %d above the least take %d bits, want %d", span, got, want)
		}
		asked := probes(keys, rng)
		for _, k := range keys {
			asked = append(asked, k-1, k, k+1)
		}
		for _, path := range simd.Paths() {
			undo := simd.Use(path)
			if err := compare(tree, keys, asked); err != nil {
				t.Fatalf("%v, %d bits: %v", path, w, err)
			}
			undo()
		}
		tree.Release()
	}
}

func TestBadConfigTakesNothing(t *testing.T) {
	before := arena.InUse()
	keys := make([]uint64, 1000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	src := layout.Source[uint64]{Len: len(keys), Codes: keys}
	for _, cfg := range []implicit.Config{{Fanout: 7}, {Leaves: implicit.Pairs, ValSize: 8}} {
		if _, err := Build(src, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
		if _, err := Survey(src, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	if _, err := Build(src, implicit.Config{Limit: 1000}); !errors.Is(err, arena.ErrLimit) {
		t.Errorf("limit of 1000 bytes: %v", err)
	}
	if arena.InUse() != before {
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

// Keys out of order are found wherever they are.
func TestUnsorted(t *testing.T) {
	before := arena.InUse()
	for at := 1; at < 1100; at++ {
		keys := make([]uint32, 1100)
		for i := range keys {
			keys[i] = uint32(i)
		}
		keys[at], keys[at-1] = keys[at-1], keys[at]
		src := source(keys)
		if at%2 == 0 {
			src.Codes, src.Encode = nil, func(dst []uint32, lo int) { copy(dst, keys[lo:]) }
		}
		if _, err := Build(src, implicit.Config{ValSize: 4}); !errors.Is(err, layout.ErrUnsorted) {
			t.Fatalf("keys %d and %d swapped: %v", at-1, at, err)
		}
	}
	if arena.InUse() != before {
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

func TestSearchesAllocateNothing(t *testing.T) {
	keys := keySets[uint64](20_000, seed.Rand(t))["gaps"]
	tree := build(t, keys, implicit.Config{ValSize: 4})
	defer tree.Release()
	ranks, some := make([]int, 3000), make([]uint64, 100)
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		n := testing.AllocsPerRun(50, func() {
			tree.Rank(keys[:3000], ranks)
			tree.Find(keys[:3000], ranks)
			tree.Seek(keys[5])
			tree.CopyKeys(some, 7)
			tree.Descend(0, tree.Depth(), keys[:3000], ranks)
			tree.RankFrom(tree.Depth(), keys[:3000], ranks)
		})
		if n > 0 {
			t.Errorf("%v: %v allocations", path, n)
		}
		undo()
	}
}
