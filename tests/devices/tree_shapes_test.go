package devices_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// set sets keys, in this order, in one batch.
func (m *treeModel) set(keys []uint64) {
	m.t.Helper()
	vals := make([]uint64, len(keys))
	for i := range vals {
		vals[i] = m.rng.Uint64()
	}
	if err := m.tree.SetBatch(keys, vals); err != nil {
		m.t.Fatal(err)
	}
	for i, k := range keys {
		m.has[k] = vals[i]
	}
}

// remove deletes keys in one batch, some of them twice.
func (m *treeModel) remove(keys []uint64) {
	m.t.Helper()
	want := 0
	for _, k := range keys {
		if _, ok := m.has[k]; ok {
			want++
		}
		delete(m.has, k)
	}
	if n := m.tree.DeleteBatch(keys, nil); n != want {
		m.t.Fatalf("DeleteBatch: %d, want %d", n, want)
	}
}

// Shapes of batches onto a tree with the keys 1000, 2000, … up to 200,000.
const (
	shapeEntries = 200
	shapeGap     = 1000
)

func spaced(n int, behind uint64) (keys []uint64) {
	for i := range n {
		keys = append(keys, uint64(i+1)*shapeGap+behind)
	}
	return keys
}

var treeShapes = []struct {
	name string
	keys func(rng *rand.Rand) []uint64
}{
	{"almost sorted", func(rng *rand.Rand) []uint64 {
		keys := spaced(shapeEntries, 1)
		for i := 0; i+1 < len(keys); i += 2 + rng.IntN(9) {
			keys[i], keys[i+1] = keys[i+1], keys[i]
		}
		return keys
	}},
	{"descending", func(*rand.Rand) []uint64 {
		keys := spaced(shapeEntries, 2)
		for i, j := 0, len(keys)-1; i < j; i, j = i+1, j-1 {
			keys[i], keys[j] = keys[j], keys[i]
		}
		return keys
	}},
	{"a burst between two keys", func(rng *rand.Rand) []uint64 { return burst(rng, shapeEntries/2*shapeGap) }},
	{"a burst before the first", func(rng *rand.Rand) []uint64 { return burst(rng, 0) }},
	{"a burst behind the last", func(rng *rand.Rand) []uint64 { return append(burst(rng, shapeEntries*shapeGap+1), ^uint64(0)) }},
	{"one key, many times", func(*rand.Rand) []uint64 {
		keys := make([]uint64, 300)
		for i := range keys {
			keys[i] = 77 * shapeGap
		}
		return keys
	}},
	{"larger than the tree", func(rng *rand.Rand) []uint64 {
		keys := spaced(5*shapeEntries, 3)
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		return keys
	}},
}

// burst returns keys of one gap, some of them twice.
func burst(rng *rand.Rand, from uint64) []uint64 {
	keys := make([]uint64, 300)
	for i := range keys {
		keys[i] = from + rng.Uint64N(shapeGap)
	}
	return keys
}

// Each shape of a batch goes onto a tree on a GPU by itself, with a snapshot
// held, and is deleted again.
func TestShapesOfTreesOnGPU(t *testing.T)      { testTreeShapes(t) }
func TestShapesOfTreesOnGPUAlone(t *testing.T) { testTreeShapes(t, pando.DeviceOnly()) }

func testTreeShapes(t *testing.T, opts ...pando.Option) {
	first := seed.Of(t)
	indextest.Interpreted(t, first)
	rng := rand.New(rand.NewPCG(first, 7))
	m := newTreeModel(t, rng, opts...)
	defer m.tree.Close()
	m.set(spaced(shapeEntries, 0))
	was := m.snapshot()
	for i, s := range treeShapes {
		if !seed.Long() && i%2 == 1 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			m.t = t
			keys := s.keys(rng)
			m.set(keys)
			m.read()
			m.remove(keys)
			m.set(spaced(shapeEntries, 0))
		})
	}
	m.t = t
	m.read()
	was.check()
	if err := was.snap.Close(); err != nil {
		t.Error(err)
	}
	if s := m.tree.Stats(); s.Device != pando.GPU(0) {
		t.Errorf("on %v: %s", s.Device, s.Reason)
	}
}
