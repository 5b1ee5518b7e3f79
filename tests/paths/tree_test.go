package paths

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

func TestTreeUint64(t *testing.T) {
	treeOnEachPath(t, facetest.Integers[uint64](), facetest.Uint64Values)
}

func TestTreeFloat64ToUint32(t *testing.T) {
	treeOnEachPath(t, facetest.Float64s[float64](), facetest.Uint32Values)
}

func TestTreeFloat32(t *testing.T) {
	treeOnEachPath(t, facetest.Float32s[float32](), facetest.Uint32Values)
}

func TestTreeInt16ToString(t *testing.T) {
	treeOnEachPath(t, facetest.Integers[int16](), facetest.StringValues)
}

// treeOnEachPath does one log of operations, all that change a tree in it, on
// every path of this machine: each returns what the model says, and so do they
// all. The snapshots, copies and files of the trees are asked everything.
func treeOnEachPath[K pando.Key, V any](t *testing.T, d facetest.Domain[K], v facetest.Values[V]) {
	s := seed.Of(t)
	for _, p := range simd.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			undo := simd.Use(p)
			defer undo()
			treeLog(t, rand.New(rand.NewPCG(s, 3)), d, v)
		})
	}
}

// entriesOf is a map in key order, the simplest thing that could be right.
type entriesOf[K pando.Key, V any] struct {
	keys []K
	vals []V
}

func (m *entriesOf[K, V]) get(k K) (v V, ok bool) {
	if i, ok := slices.BinarySearchFunc(m.keys, k, cmp.Compare[K]); ok {
		return m.vals[i], true
	}
	return v, false
}

func (m *entriesOf[K, V]) set(k K, v V) {
	i, ok := slices.BinarySearchFunc(m.keys, k, cmp.Compare[K])
	if ok {
		m.vals[i] = v
		return
	}
	m.keys, m.vals = slices.Insert(m.keys, i, k), slices.Insert(m.vals, i, v)
}

func (m *entriesOf[K, V]) drop(k K) {
	if i, ok := slices.BinarySearchFunc(m.keys, k, cmp.Compare[K]); ok {
		m.keys, m.vals = slices.Delete(m.keys, i, i+1), slices.Delete(m.vals, i, i+1)
	}
}

// treeLog does the log on one tree.
func treeLog[K pando.Key, V any](t *testing.T, rng *rand.Rand, d facetest.Domain[K], v facetest.Values[V]) {
	tree, err := pando.NewTree[K, V](codec[V](), pando.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	m := &entriesOf[K, V]{}
	draw := func() K {
		switch rng.IntN(8) {
		case 0:
			return d.Ends[rng.IntN(len(d.Ends))]
		case 1:
			return d.Bits(rng.Uint64())
		}
		return d.Num(rng.IntN(3000))
	}
	for round := range 12 {
		for range 700 {
			treeStep(t, rng, tree, m, draw, v)
		}
		treeBatch(t, rng, tree, m, draw, v)
		if t.Failed() {
			return
		}
		if round%4 == 3 {
			askTree(t, rng, tree, m, d, v)
		}
	}
}

// treeStep does one operation on both.
func treeStep[K pando.Key, V any](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], m *entriesOf[K, V], draw func() K, v facetest.Values[V]) {
	t.Helper()
	k, val := draw(), v.Of(rng.IntN(1000))
	want, had := m.get(k)
	is := func(name string, old V, ok bool) {
		if ok != had || !v.Same(old, want) {
			t.Errorf("%s(%v): was %v, %t, want %v, %t", name, k, old, ok, want, had)
		}
	}
	switch op := rng.IntN(8); op {
	case 0, 1, 2:
		old, ok, err := tree.Swap(k, val)
		if err != nil {
			t.Fatal(err)
		}
		is("Swap", old, ok)
		m.set(k, val)
	case 3, 4:
		old, ok := tree.Delete(k)
		is("Delete", old, ok)
		m.drop(k)
	case 5:
		keep := rng.IntN(3) > 0
		if err := tree.Update(k, func(old V, ok bool) (V, bool) { is("Update", old, ok); return val, keep }); err != nil {
			t.Fatal(err)
		}
		if m.drop(k); keep {
			m.set(k, val)
		}
	case 6:
		old, ok := tree.Get(k)
		is("Get", old, ok)
	case 7:
		if rng.IntN(10) == 0 && len(m.keys) > 0 {
			first, old, ok := tree.PopMin()
			k = m.keys[0]
			want, had = m.vals[0], true
			is("PopMin", old, ok && cmp.Compare(first, k) == 0)
			m.drop(k)
		}
	}
}

// treeBatch does a batch on both.
func treeBatch[K pando.Key, V any](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], m *entriesOf[K, V], draw func() K, v facetest.Values[V]) {
	t.Helper()
	n := rng.IntN(900)
	ops, keys, vals, found := make([]pando.Op, n), make([]K, n), make([]V, n), make([]bool, n)
	for i := range ops {
		ops[i], keys[i], vals[i] = pando.Op(rng.IntN(3)), draw(), v.Of(rng.IntN(1000))
	}
	given := slices.Clone(vals)
	if err := tree.Apply(ops, keys, vals, found); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		want, had := m.get(k)
		if found[i] != had || !v.Same(vals[i], want) {
			t.Fatalf("operation %d of %d, on %v: was %v, %t, want %v, %t", i, n, k, vals[i], found[i], want, had)
		}
		switch ops[i] {
		case pando.OpSet:
			m.set(k, given[i])
		case pando.OpDelete:
			m.drop(k)
		}
	}
}

// askTree asks a tree, and what is made of it, everything.
func askTree[K pando.Key, V any](t *testing.T, rng *rand.Rand, tree *pando.Tree[K, V], m *entriesOf[K, V], d facetest.Domain[K], v facetest.Values[V]) {
	t.Helper()
	model := facetest.NewModel(slices.Clone(m.keys), slices.Clone(m.vals), v.Same)
	asked := facetest.Probes(model, d, questions, rng)
	i := 0
	for k, val := range tree.All() {
		if i >= len(m.keys) || !model.Is(i, k, val) {
			t.Fatalf("entry %d is %v → %v", i, k, val)
		}
		i++
	}
	if i != len(m.keys) || tree.Len() != i {
		t.Fatalf("%d entries, %d in All, want %d", tree.Len(), i, len(m.keys))
	}
	vals, found := make([]V, len(asked)), make([]bool, len(asked))
	tree.GetBatch(asked, vals, found)
	for i, k := range asked {
		want, had := m.get(k)
		if found[i] != had || !v.Same(vals[i], want) || tree.Rank(k) != model.Rank(k) {
			t.Fatalf("key %v: %v, %t, rank %d, want %v, %t, %d", k, vals[i], found[i], tree.Rank(k), want, had, model.Rank(k))
		}
	}
	path := fmt.Sprint(t.TempDir(), "/tree.pando")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := pando.OpenTree[K, V](path, codec[V]())
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	for name, f := range map[string]func() (*pando.Frozen[K, V], error){
		"snapshot":           func() (*pando.Frozen[K, V], error) { return tree.Snapshot(), nil },
		"copy":               func() (*pando.Frozen[K, V], error) { return tree.Freeze(pando.On(pando.CPU), codec[V]()) },
		"snapshot of a file": func() (*pando.Frozen[K, V], error) { return back.Snapshot(), nil },
	} {
		ix, err := f()
		if err != nil {
			t.Fatal(err)
		}
		if err := facetest.CheckIndex(ix, model, asked); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ix.Close()
	}
}
