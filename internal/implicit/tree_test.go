package implicit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// model is the simplest thing that could be right: sorted keys, each with its
// place as value.
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

func value[C simd.Code](place int) C { return C(place)*2654435761 + 12345 }

func configs[C simd.Code]() []Config {
	size := keyBytes[C]()
	slots := simd.LineBytes / size
	var out []Config
	for _, fanout := range []int{slots, slots + 1} {
		out = append(out,
			Config{Leaves: Pairs, ValSize: size, Fanout: fanout, Workers: 2},
			Config{Leaves: Apart, ValSize: size, Fanout: fanout, Distance: 3},
			Config{Leaves: Apart, Fanout: fanout, Distance: 1, Pages: arena.HugeAll})
	}
	return out
}

func build[C simd.Code](t testing.TB, keys []C, cfg Config) *Tree[C] {
	vals := make([]C, len(keys)+1)
	for i := range vals {
		vals[i] = value[C](i)
	}
	src := layout.Source[C]{Len: len(keys), Codes: keys, Vals: unsafe.Pointer(&vals[0])}
	if len(keys)%2 == 1 { // the other way in
		src.Codes, src.Encode = nil, func(dst []C, lo int) { copy(dst, keys[lo:]) }
	}
	tree, err := Build(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Check(); err != nil {
		t.Fatalf("%d keys, %+v: %v", len(keys), cfg, err)
	}
	return tree
}

// sizes lists 0, 1, and the borders of nodes and levels up to three levels.
func sizes(perLeaf, fanout int) []int {
	out := []int{0, 1, 2, 3}
	for n := perLeaf; n <= perLeaf*fanout*fanout*fanout; n *= fanout {
		out = append(out, n-1, n, n+1, 2*n, 2*n+1)
	}
	return out
}

// keySets returns key sets of size n that try to break something.
func keySets[C simd.Code](n int, rng *rand.Rand) map[string][]C {
	sets := map[string][]C{}
	for _, name := range []string{"random", "all zero", "all maximum", "ends", "few distinct", "dense"} {
		keys := make([]C, n)
		for i := range keys {
			switch name {
			case "random":
				keys[i] = C(rng.Uint64())
			case "all maximum":
				keys[i] = ^C(0)
			case "ends":
				keys[i] = C(rng.IntN(4)) - 2 // 0, 1 and the two greatest
			case "few distinct":
				keys[i] = C(rng.IntN(n/7+1)) * 10
			case "dense":
				keys[i] = C(i)
			}
		}
		slices.Sort(keys)
		sets[name] = keys
	}
	return sets
}

// probes returns keys to ask for: hits, and misses before, between and after.
func probes[C simd.Code](keys []C, rng *rand.Rand) []C {
	out := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1}
	for range 200 {
		k := C(rng.Uint64())
		if len(keys) > 0 && rng.IntN(4) > 0 {
			k = keys[rng.IntN(len(keys))] + C(rng.IntN(3)) - 1
		}
		out = append(out, k)
	}
	return out
}

func TestAgainstSortedSlice(t *testing.T) {
	t.Run("32 bits", func(t *testing.T) { againstModel[uint32](t) })
	t.Run("64 bits", func(t *testing.T) { againstModel[uint64](t) })
}

func againstModel[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs[C]() {
		for _, n := range sizes(simd.LineBytes/keyBytes[C]()/2, cfg.Fanout) {
			for name, keys := range keySets[C](n, rng) {
				if !seed.Long() && rng.IntN(12) > 0 || seed.RaceDetector && rng.IntN(10) > 0 {
					continue
				}
				tree := build(t, keys, cfg)
				for _, path := range simd.Paths() {
					undo := simd.Use(path)
					if err := compare(tree, keys, probes(keys, rng)); err != nil {
						t.Fatalf("%v, %v, fanout %d, %d keys %s: %v", path, cfg.Leaves, cfg.Fanout, n, name, err)
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
	vals, found := make([]C, len(asked)), make([]bool, len(asked))
	tree.Find(asked, finds)
	pairs := tree.cfg.Leaves == Pairs
	hits := 0
	if pairs {
		hits = Paired[C]{tree}.GetPairs(asked, vals, found)
	}
	tree.Rank(asked, ranks)
	for i, key := range asked {
		if want := keys.rank(key); ranks[i] != want {
			return fmt.Errorf("rank of %d is %d, want %d", key, ranks[i], want)
		}
	}
	for i, key := range asked {
		want := keys.find(key)
		if finds[i] != want {
			return fmt.Errorf("%d found at %d, want %d", key, finds[i], want)
		}
		if rank, equal := tree.Seek(key); rank != ranks[i] || equal != (want >= 0) {
			return fmt.Errorf("Seek(%d) = %d, %v; want %d, %v", key, rank, equal, ranks[i], want >= 0)
		}
		if pairs {
			wantVal := C(0)
			if want >= 0 {
				wantVal = value[C](want)
				hits--
			}
			if found[i] != (want >= 0) || vals[i] != wantVal {
				return fmt.Errorf("GetPairs(%d) = %d, %v; want %d, %v", key, vals[i], found[i], wantVal, want >= 0)
			}
		}
	}
	if hits != 0 {
		return fmt.Errorf("%d hits too many counted", hits)
	}
	return compareEntries(tree, keys)
}

func compareEntries[C simd.Code](tree *Tree[C], keys []C) error {
	size := tree.cfg.ValSize
	for lo := 0; lo <= len(keys); lo += 1 + lo/3 {
		gotKeys, gotVals := make([]C, len(keys)-lo), make([]C, len(keys)-lo)
		tree.CopyKeys(gotKeys, lo)
		if size > 0 && lo < len(keys) {
			tree.CopyVals(unsafe.Slice((*byte)(unsafe.Pointer(&gotVals[0])), size*len(gotVals)), lo)
		}
		for i, k := range gotKeys {
			if k != keys[lo+i] || tree.Key(lo+i) != k {
				return fmt.Errorf("key %d is %d, %d; want %d", lo+i, k, tree.Key(lo+i), keys[lo+i])
			}
			if size > 0 && (gotVals[i] != value[C](lo+i) || *(*C)(tree.Val(lo + i)) != value[C](lo+i)) {
				return fmt.Errorf("value %d is %d", lo+i, gotVals[i])
			}
		}
	}
	return nil
}

func TestBadConfigTakesNothing(t *testing.T) {
	before := arena.InUse()
	src := layout.Source[uint64]{Len: 1000, Codes: make([]uint64, 1000)}
	for _, cfg := range []Config{{Fanout: 7}, {Fanout: 10}, {Leaves: Pairs, ValSize: 4}} {
		if _, err := Build(src, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	if _, err := Build(src, Config{Limit: 1000}); !errors.Is(err, arena.ErrLimit) {
		t.Errorf("limit of 1000 bytes: %v", err)
	}
	for _, n := range []int{min(1<<40, math.MaxInt/4), math.MaxInt / 2} {
		if _, err := Need[uint64](n, Config{}); !errors.Is(err, layout.ErrTooLarge) {
			t.Errorf("%d keys: %v", n, err)
		}
	}
	if arena.InUse() != before {
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

// A reader that is overtaken by Release may get nonsense, but must come back.
func TestReleasedTreeDoesNotFault(t *testing.T) {
	for _, cfg := range configs[uint64]() {
		for _, n := range []int{1, 100, 8*9*9*9 + 1, 200_000} {
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = uint64(i) << 40
			}
			tree := build(t, keys, cfg)
			tree.Release()
			for _, path := range simd.Paths() {
				undo := simd.Use(path)
				ranks := make([]int, len(keys))
				tree.Rank(keys, ranks)
				tree.Find(keys, ranks)
				tree.Seek(^uint64(0))
				undo()
			}
		}
	}
}

func TestCheckFindsDamage(t *testing.T) {
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = uint64(i) * 10
	}
	for name, damage := range map[string]func(*Tree[uint64]){
		"order":     func(t *Tree[uint64]) { t.line(t.Levels, 7)[1] = 0 },
		"separator": func(t *Tree[uint64]) { t.line(1, 2)[3]++ },
		"padding":   func(t *Tree[uint64]) { t.line(0, 0)[7] = 5 },
	} {
		tree := build(t, keys, Config{Leaves: Pairs, ValSize: 8})
		damage(tree)
		if tree.Check() == nil {
			t.Errorf("%s: damage not seen", name)
		}
	}
}
