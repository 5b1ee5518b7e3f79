package pando_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// treeModel is a sorted slice: the simplest thing that could be right.
type treeModel[K cmp.Ordered, V comparable] struct {
	keys []K
	vals []V
}

func (m *treeModel[K, V]) find(k K) (int, bool) { return slices.BinarySearch(m.keys, k) }

func (m *treeModel[K, V]) get(k K) (v V, ok bool) {
	if i, ok := m.find(k); ok {
		return m.vals[i], true
	}
	return v, false
}

func (m *treeModel[K, V]) set(k K, v V) {
	i, ok := m.find(k)
	if ok {
		m.vals[i] = v
		return
	}
	m.keys, m.vals = slices.Insert(m.keys, i, k), slices.Insert(m.vals, i, v)
}

func (m *treeModel[K, V]) delete(k K) {
	if i, ok := m.find(k); ok {
		m.keys, m.vals = slices.Delete(m.keys, i, i+1), slices.Delete(m.vals, i, i+1)
	}
}

func same[T comparable](a, b T) bool { return a == b || a != a && b != b }

type named uint8

type text string

func TestTreeAgainstModel(t *testing.T) {
	word := func(rng *rand.Rand) string { return string(rune('a' + rng.IntN(26))) }
	t.Run("uint64,uint64", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) uint64 { return r.Uint64N(3000) }, (*rand.Rand).Uint64, 0, math.MaxUint64)
	})
	t.Run("uint32,uint32", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) uint32 { return r.Uint32N(3000) }, (*rand.Rand).Uint32, 0, math.MaxUint32)
	})
	t.Run("int32,uint64", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) int32 { return r.Int32N(3000) - 1500 }, (*rand.Rand).Uint64, math.MinInt32, math.MaxInt32)
	})
	t.Run("int64,uint32", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) int64 { return r.Int64N(3000) - 1500 }, (*rand.Rand).Uint32, math.MinInt64, math.MaxInt64)
	})
	t.Run("float64,string", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) float64 { return float64(r.IntN(3000)) - 1500 }, word, math.NaN(), math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0)
	})
	t.Run("named,bool", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) named { return named(r.Uint32()) }, func(r *rand.Rand) bool { return r.IntN(2) == 0 }, 0, 255)
	})
	t.Run("uint64,nothing", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) uint64 { return r.Uint64N(3000) }, func(*rand.Rand) struct{} { return struct{}{} }, 0, math.MaxUint64)
	})
	long := strings.Repeat("long", 1000)
	path := func(r *rand.Rand) string { return "/a/" + strconv.Itoa(r.IntN(300)) + strings.Repeat("/b", r.IntN(9)) }
	t.Run("string,uint64", func(t *testing.T) {
		againstModel(t, path, (*rand.Rand).Uint64, "", "\x00", "\xff\xff", "/", "/a/1", long, long+"x")
	})
	t.Run("string,string", func(t *testing.T) { againstModel(t, path, word, "", "\x00\x00", long) })
	t.Run("named string,uint64", func(t *testing.T) {
		againstModel(t, func(r *rand.Rand) text { return text([]byte{byte(r.Uint32()), byte(r.IntN(4))}) }, (*rand.Rand).Uint64, "", "\xff")
	})
}

// Numbers in a radix tree, where that is asked for.
func TestRadixTreeOfNumbers(t *testing.T) {
	word := func(rng *rand.Rand) string { return string(rune('a' + rng.IntN(26))) }
	radix := pando.Layout(pando.Radix)
	t.Run("uint64,uint64", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) uint64 { return r.Uint64N(3000) }, (*rand.Rand).Uint64, 0, math.MaxUint64)
	})
	t.Run("int32,uint64", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) int32 { return r.Int32N(3000) - 1500 }, (*rand.Rand).Uint64, math.MinInt32, math.MaxInt32)
	})
	t.Run("uint32,uint32", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) uint32 { return r.Uint32N(3000) }, (*rand.Rand).Uint32, 0, math.MaxUint32)
	})
	t.Run("float64,string", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) float64 { return float64(r.IntN(3000)) - 1500 }, word, math.NaN(), math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0)
	})
	t.Run("named,bool", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) named { return named(r.Uint32()) }, func(r *rand.Rand) bool { return r.IntN(2) == 0 }, 0, 255)
	})
	t.Run("uint64,nothing", func(t *testing.T) {
		againstModelIn(t, radix, func(r *rand.Rand) uint64 { return r.Uint64N(3000) }, func(*rand.Rand) struct{} { return struct{}{} }, 0, math.MaxUint64)
	})
	tree, err := pando.TreeOf([]int32{3, -7, 3, 0}, []uint64{1, 2, 3, 4}, radix)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	path := filepath.Join(t.TempDir(), "tree.pando")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := pando.OpenTree[int32, uint64](path, radix)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for _, tree := range []*pando.Tree[int32, uint64]{tree, opened} {
		var got []int
		for k, v := range tree.All() {
			got = append(got, int(k), int(v))
		}
		if want := []int{-7, 2, 0, 4, 3, 3}; tree.Stats().Layout != pando.Radix || !slices.Equal(got, want) {
			t.Errorf("layout %v, %v; want %v", tree.Stats().Layout, got, want)
		}
	}
}

func againstModel[K pando.Key, V comparable](t *testing.T, key func(*rand.Rand) K, val func(*rand.Rand) V, edges ...K) {
	againstModelIn(t, pando.Layout(pando.AutoLayout), key, val, edges...)
}

func againstModelIn[K pando.Key, V comparable](t *testing.T, in pando.Option, key func(*rand.Rand) K, val func(*rand.Rand) V, edges ...K) {
	rng := seed.Rand(t)
	tree, err := pando.NewTree[K, V](pando.Workers(2), in)
	if err != nil {
		t.Fatal(err)
	}
	model := &treeModel[K, V]{}
	draw := func() K {
		if rng.IntN(10) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return key(rng)
	}
	for range 8000 {
		stepBoth(t, rng, tree, model, draw, val)
		if t.Failed() {
			return
		}
	}
	compareTree(t, tree, model, draw)
	snap := tree.Snapshot()
	kept := &treeModel[K, V]{slices.Clone(model.keys), slices.Clone(model.vals)}
	for range 2000 {
		stepBoth(t, rng, tree, model, draw, val)
	}
	batchBoth(t, rng, tree, model, draw, val)
	compareTree(t, tree, model, draw)
	compareTree(t, snap, kept, draw)
	frozen, err := tree.Freeze(pando.On(pando.CPU))
	if err != nil {
		t.Fatal(err)
	}
	compareTree(t, frozen, model, draw)
	frozen.Close()
	tree.Close()
	compareTree(t, snap, kept, draw)
	snap.Close()
	if err := tree.Set(draw(), val(rng)); !errors.Is(err, pando.ErrClosed) {
		t.Errorf("Set after Close: %v", err)
	}
}

// stepBoth does one operation on both.
func stepBoth[K pando.Key, V comparable](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], model *treeModel[K, V], draw func() K, val func(*rand.Rand) V) {
	t.Helper()
	k, v := draw(), val(rng)
	want, had := model.get(k)
	check := func(name string, old V, ok bool) {
		if !same(old, want) || ok != had {
			t.Errorf("%s(%v): was %v, %t, want %v, %t", name, k, old, ok, want, had)
		}
	}
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		old, ok, err := tree.Swap(k, v)
		if err != nil {
			t.Fatal(err)
		}
		check("Swap", old, ok)
		model.set(k, v)
	case 4, 5, 6:
		if err := tree.Set(k, v); err != nil {
			t.Fatal(err)
		}
		model.set(k, v)
	case 7, 8:
		old, ok := tree.Delete(k)
		check("Delete", old, ok)
		model.delete(k)
	case 9:
		keep := rng.IntN(2) == 0
		if err := tree.Update(k, func(old V, ok bool) (V, bool) { check("Update", old, ok); return v, keep }); err != nil {
			t.Fatal(err)
		}
		if model.delete(k); keep {
			model.set(k, v)
		}
	case 10:
		old, ok := tree.Get(k)
		check("Get", old, ok)
	case 11:
		if rng.IntN(20) == 0 {
			popBoth(t, rng, tree, model)
		}
		if rng.IntN(200) == 0 {
			lo, hi := draw(), draw()
			from, _ := model.find(lo)
			to, ok := model.find(hi)
			if ok {
				to++
			}
			to = max(from, to)
			if n := tree.DeleteRange(lo, hi); n != to-from {
				t.Errorf("DeleteRange(%v, %v) = %d, want %d", lo, hi, n, to-from)
			}
			model.keys, model.vals = slices.Delete(model.keys, from, to), slices.Delete(model.vals, from, to)
		}
	}
}

func popBoth[K pando.Key, V comparable](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], model *treeModel[K, V]) {
	t.Helper()
	i, pop := 0, tree.PopMin
	if rng.IntN(2) == 0 {
		i, pop = len(model.keys)-1, tree.PopMax
	}
	k, v, ok := pop()
	if ok != (len(model.keys) > 0) || ok && (cmp.Compare(k, model.keys[i]) != 0 || !same(v, model.vals[i])) {
		t.Errorf("popped %v → %v, %t", k, v, ok)
	}
	if ok {
		model.delete(k)
	}
}

// batchBoth does batches on both.
func batchBoth[K pando.Key, V comparable](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], model *treeModel[K, V], draw func() K, val func(*rand.Rand) V) {
	t.Helper()
	for round := range 12 {
		n := rng.IntN(3000)
		ops, keys, vals, found := make([]pando.Op, n), make([]K, n), make([]V, n), make([]bool, n)
		for i := range ops {
			ops[i], keys[i], vals[i] = pando.Op(rng.IntN(3)), draw(), val(rng)
		}
		given := slices.Clone(vals)
		switch round % 3 {
		case 0:
			if err := tree.Apply(ops, keys, vals, found); err != nil {
				t.Fatal(err)
			}
		case 1:
			for i := range ops {
				ops[i] = pando.OpSet
			}
			if err := tree.SetBatch(keys, vals); err != nil {
				t.Fatal(err)
			}
		case 2:
			for i := range ops {
				ops[i] = pando.OpDelete
			}
			tree.DeleteBatch(keys, found)
		}
		for i, k := range keys {
			old, had := model.get(k)
			if round%3 != 1 && found[i] != had || round%3 == 0 && !same(vals[i], old) {
				t.Fatalf("round %d, operation %d on %v: was %v, %t, want %v, %t", round, i, k, vals[i], found[i], old, had)
			}
			switch ops[i] {
			case pando.OpSet:
				model.set(k, given[i])
			case pando.OpDelete:
				model.delete(k)
			}
		}
	}
}

// compareTree compares an index with the model by every method that reads.
func compareTree[K pando.Key, V comparable](t *testing.T, ix pando.Index[K, V], model *treeModel[K, V], draw func() K) {
	t.Helper()
	keys := make([]K, seed.Size(100, 300))
	for i := range keys {
		keys[i] = draw()
	}
	if err := facetest.CheckIndex(ix, &facetest.Model[K, V]{Keys: model.keys, Vals: model.vals, Same: same[V]}, keys); err != nil {
		t.Fatal(err)
	}
}

func TestTreeFile(t *testing.T) {
	tree, err := pando.NewTree[float64, string](pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) { return string(b), nil }))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		tree.Set(-float64(i), "value")
	}
	path := filepath.Join(t.TempDir(), "tree")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	codec := pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) { return string(b), nil })
	back, err := pando.OpenTree[float64, string](path, codec)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := back.Get(-4999); back.Len() != 5000 || v != "value" || !ok {
		t.Errorf("%d entries, Get = %q, %t", back.Len(), v, ok)
	}
}

func TestTreeRefuses(t *testing.T) {
	if _, err := pando.NewTree[string, uint64](pando.Layout(pando.BPlus)); !errors.Is(err, pando.ErrLayout) {
		t.Errorf("strings in a B+-tree: %v", err)
	}
	tree, err := pando.NewTree[uint64, uint64](pando.MemoryLimit(100_000))
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint64, 20_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	if err := tree.SetBatch(keys, keys); !errors.Is(err, pando.ErrMemoryLimit) || tree.Len() != 0 {
		t.Errorf("batch over the limit: %v, %d entries", err, tree.Len())
	}
	var n uint64
	for err = nil; err == nil; n++ {
		err = tree.Set(n*7919%1_000_003, n)
	}
	if !errors.Is(err, pando.ErrMemoryLimit) || tree.Len() != int(n-1) || n < 1000 {
		t.Errorf("after %d of %d: %v", tree.Len(), n, err)
	}
	if err := tree.Apply([]pando.Op{9}, []uint64{1}, []uint64{1}, nil); !errors.Is(err, pando.ErrOption) {
		t.Errorf("Op(9): %v", err)
	}
	if err := tree.SetBatch(keys, keys[1:]); !errors.Is(err, pando.ErrLength) {
		t.Errorf("lengths: %v", err)
	}
}

// Apply names the first operation that there is none of, wherever it is, and does
// nothing.
func TestUnknownOps(t *testing.T) {
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	ops, keys := make([]pando.Op, 21), make([]uint64, 21)
	for at := range ops {
		for bad := 3; bad < 256; bad++ {
			for i := range ops {
				ops[i] = pando.Op(i % 3)
			}
			ops[at], ops[len(ops)-1] = pando.Op(bad), pando.Op(bad)
			err := tree.Apply(ops, keys, keys, nil)
			if want := fmt.Sprintf("operation %d is Op(%d)", at, bad); !errors.Is(err, pando.ErrOption) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
		}
	}
	if tree.Len() != 0 {
		t.Errorf("%d entries", tree.Len())
	}
}

// What is set while an iteration is at the last entry comes next.
func TestIterationGoesOn(t *testing.T) {
	for name, iterate := range map[string]func(*pando.Tree[uint64, uint64]) iter.Seq2[uint64, uint64]{
		"All":   func(tree *pando.Tree[uint64, uint64]) iter.Seq2[uint64, uint64] { return tree.All() },
		"Range": func(tree *pando.Tree[uint64, uint64]) iter.Seq2[uint64, uint64] { return tree.Range(0, 1000) },
		"Scan": func(tree *pando.Tree[uint64, uint64]) iter.Seq2[uint64, uint64] {
			return tree.Scan(pando.Before(uint64(1001)))
		},
	} {
		tree, err := pando.TreeOf([]uint64{0}, []uint64{0})
		if err != nil {
			t.Fatal(err)
		}
		if name != "All" {
			tree.Set(5000, 0) // beyond the end
		}
		want := uint64(0)
		for k := range iterate(tree) {
			if k != want {
				t.Fatalf("%s: key %d, want %d", name, k, want)
			}
			if want++; want <= 1000 {
				tree.Set(want, 0)
			}
		}
		if want != 1001 {
			t.Errorf("%s: ends after key %d", name, want-1)
		}
		tree.Close()
	}
}
