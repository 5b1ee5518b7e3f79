package blocked

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
)

func TestBadConfigTakesNothing(t *testing.T) {
	before := arena.InUse()
	src := layout.Source[uint64]{Len: 1000, Codes: make([]uint64, 1000)}
	for _, cfg := range []Config{
		{Geometry: Geometry{L: 4}}, {Geometry: Geometry{K: 4}}, {Geometry: Geometry{K: -1}},
		{Geometry: Geometry{P: 4}}, {Geometry: Geometry{P: -3}}, {Geometry: Geometry{P: 21}},
		{Config: implicit.Config{Leaves: implicit.Pairs, ValSize: 4}},
	} {
		if _, err := Build(src, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	if _, err := Build(src, Config{Config: implicit.Config{Limit: 1000}}); !errors.Is(err, arena.ErrLimit) {
		t.Errorf("limit of 1000 bytes: %v", err)
	}
	for _, n := range []int{min(1<<40, math.MaxInt/4), math.MaxInt / 2} {
		if _, err := Need[uint64](n, Config{}); !errors.Is(err, layout.ErrTooLarge) {
			t.Errorf("%d keys: %v", n, err)
		}
	}
	src.Codes[500] = 1
	if _, err := Build(src, Config{}); !errors.Is(err, layout.ErrUnsorted) {
		t.Errorf("unsorted: %v", err)
	}
	if arena.InUse() > before { // less, where trees of other tests are gone meanwhile
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

// multiples returns n keys, each so far from the one before.
func multiples[C simd.Code](n int, step C) []C {
	keys := make([]C, n)
	for i := range keys {
		keys[i] = C(i) * step
	}
	return keys
}

// A reader that is overtaken by Release may get nonsense, but must come back;
// and so must one of a tree of arbitrary bytes.
func TestReleasedTreeDoesNotFault(t *testing.T) {
	t.Run("32 bits", releasedTree[uint32])
	t.Run("64 bits", releasedTree[uint64])
}

func releasedTree[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs[C]() {
		for _, n := range []int{1, 100, 8*8*8*8 + 1, 70_000} {
			if !seed.Long() && n > 10_000 {
				continue
			}
			keys := multiples[C](n, ^C(0)/C(n))
			tree := build(t, keys, cfg)
			for _, s := range tree.Segments()[:2] {
				for i := range s {
					s[i] = byte(rng.Uint32())
				}
			}
			searchAll(tree, keys)
			tree.Release()
			searchAll(tree, keys)
		}
	}
}

func searchAll[C simd.Code](tree *Tree[C], keys []C) {
	keys = append([]C{0, ^C(0)}, keys...)
	ranks, vals := make([]int, len(keys)), make([]C, len(keys))
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		tree.Rank(keys, ranks)
		tree.Find(keys, ranks)
		if tree.leaves.Leaf() == implicit.Pairs {
			Paired[C]{tree}.GetPairs(keys, vals, nil)
		}
		tree.Seek(^C(0))
		undo()
	}
}

// keyOf returns the address of a key in a tree of pairs.
func keyOf(t *Tree[uint64], i int) *uint64 {
	return (*uint64)(unsafe.Add(t.Val(i), -simd.LineBytes/2))
}

func TestCheckFindsDamage(t *testing.T) {
	keys := multiples[uint64](5999, 10) // 1500 leaves, the last one not full: 4 levels of lines
	for name, damage := range map[string]func(*Tree[uint64]){
		"order of keys":     func(t *Tree[uint64]) { *keyOf(t, 701) = 0 },
		"a leaf's greatest": func(t *Tree[uint64]) { *keyOf(t, 703)++ },
		"greatest of all":   func(t *Tree[uint64]) { *keyOf(t, 5998)++ },
		"padding of a leaf": func(t *Tree[uint64]) { *keyOf(t, 5999)++ },
		"separator":         func(t *Tree[uint64]) { t.line(3, 100)[3]++ },
		"root":              func(t *Tree[uint64]) { t.line(0, 0)[0]-- },
		"order of a line":   func(t *Tree[uint64]) { slices.Reverse(t.line(2, 5)) },
		"spare slot":        func(t *Tree[uint64]) { t.line(1, 0)[7] = 5 },
		"place of no child": func(t *Tree[uint64]) { t.line(0, 0)[6] = 70000 },
		"unused line":       func(t *Tree[uint64]) { t.line(3, 190)[0] = 1 },
	} {
		for _, geo := range []Geometry{{P: 3}, {P: 6}, {K: 2, P: 9}, {K: 1, P: 12}} {
			if strings.HasPrefix(name, "unused") && geo.P == 3 { // pages of a line: none is unused
				continue
			}
			cfg := Config{implicit.Config{Leaves: implicit.Pairs, ValSize: 8}, geo}
			tree := build(t, keys, cfg)
			if damage(tree); tree.Check() == nil {
				t.Errorf("%v, %s: damage not seen", geo, name)
			}
			tree.Release()
		}
	}
}

// A block with the bytes of a tree opens as that tree; one of other sizes does
// not open.
func TestOpensOverItsSegments(t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs[uint32]() {
		for _, n := range []int{0, 1, 16, 17, 5000, 70_001} {
			if !seed.Long() && n > 10_000 {
				continue
			}
			keys := hardKeys[uint32](n, rng)["random"]
			tree := build(t, keys, cfg)
			plan, err := Plan[uint32](n, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for _, short := range []int{0, 64} {
				sizes := slices.Clone(plan.Sizes)
				sizes[1] -= short
				block, err := arena.New(sizes, plan.Slack, arena.Small, 0)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range tree.Segments() {
					copy(block.Segment(i), s)
				}
				opened, err := Open[uint32](n, cfg, block)
				if short > 0 {
					if err == nil {
						t.Errorf("%d keys, %v: opens over a line too few", n, cfg)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(opened.Check(), compare(opened, keys, probesFor(keys, rng))); err != nil {
					t.Errorf("%d keys, %v: %v", n, cfg, err)
				}
				if need, _ := Need[uint32](n, cfg); short == 0 && need < opened.Stats().InnerBytes+opened.Stats().LeafBytes {
					t.Errorf("%d keys, %v: needs %d bytes", n, cfg, need)
				}
				opened.Release()
			}
			tree.Release()
		}
	}
}

// Searches allocate nothing.
func TestSearchesAllocateNothing(t *testing.T) {
	keys := multiples[uint64](10_000, 7)
	tree := Paired[uint64]{build(t, keys, Config{Config: implicit.Config{Leaves: implicit.Pairs, ValSize: 8}})}
	ranks, vals := make([]int, len(keys)), make([]uint64, len(keys))
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		if a := testing.AllocsPerRun(50, func() {
			tree.Rank(keys, ranks)
			tree.Find(keys, ranks)
			tree.GetPairs(keys, vals, nil)
			tree.Descend(0, 1, keys, ranks)
			tree.RankFrom(1, keys, ranks)
			tree.Seek(77)
		}); a > 0 {
			t.Errorf("%v: %v allocations", path, a)
		}
		undo()
	}
}

// docs/format.md gives these numbers; a file that was written once must be
// readable for ever.
func TestFormats(t *testing.T) {
	sections := []snapshot.Kind{{Number: 1, Name: "inner"}, {Number: 2, Name: "leaves"}}
	want := []*snapshot.Format{
		{Number: 4, Name: "blocked", Version: 2, Sections: sections, Pairs: true, Paged: true},
		{Number: 5, Name: "blocked", Version: 2, Sections: sections, Paged: true},
	}
	if got := (Layout[uint32]{}).Formats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
