package devices_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

func newHybridModel(t testing.TB, rng *rand.Rand) *treeModel {
	t.Helper()
	tree, err := pando.NewTree[uint64, uint64](pando.On(pando.Hybrid(0)))
	if err != nil {
		t.Fatal(err)
	}
	return &treeModel{t, tree, map[uint64]uint64{}, rng}
}

// A tree whose inner nodes are on a GPU answers like a map, whatever is done to
// it.
func TestHybridTree(t *testing.T) {
	first := seed.Of(t)
	seeds, steps := uint64(3), 60
	if !seed.Long() {
		seeds, steps = 1, 40
	}
	for i := range seeds {
		indextest.Interpreted(t, first+i)
		m := newHybridModel(t, rand.New(rand.NewPCG(first+i, 1)))
		for range steps {
			m.step()
			m.getBatch()
		}
		m.read()
		if s := m.tree.Stats(); s.Device != pando.Hybrid(0) || s.DeviceBytes == 0 || s.Reason == "" {
			t.Fatalf("on %v: %s, %d bytes", s.Device, s.Reason, s.DeviceBytes)
		}
		m.tree.Close()
	}
}

// Keys and values of other widths than the tree's go through the mirror, too.
func TestHybridTreeOfNarrowKeys(t *testing.T) {
	indextest.Interpreted(t, seed.Of(t))
	keys, vals := make([]int32, 3000), make([]float64, 3000)
	for i := range keys {
		keys[i], vals[i] = int32(7*i-9000), float64(i)
	}
	tree, err := pando.TreeOf(keys, vals, pando.On(pando.Hybrid(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	got, found := make([]float64, len(keys)), make([]bool, len(keys))
	if hits := tree.GetBatch(keys, got, found); hits != len(keys) {
		t.Fatalf("%d hits", hits)
	}
	for i := range got {
		if got[i] != vals[i] || !found[i] {
			t.Fatalf("key %d is %g, want %g", keys[i], got[i], vals[i])
		}
	}
}

// Whatever operation of the device fails, the CPU goes on, and Stats say so.
// PANDO_LONG=1000 lets each of them fail in turn.
func TestHybridTreeSurvivesItsGPU(t *testing.T) {
	indextest.Quiet(t)
	first := seed.Of(t)
	work := func(dev device.Device) pando.Stats {
		indextest.PreferCPU(t, false)
		indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
		m := newHybridModel(t, rand.New(rand.NewPCG(first, 2)))
		defer m.tree.Close()
		for range 8 {
			m.step()
			m.getBatch()
		}
		m.read()
		return m.tree.Stats()
	}
	eachFault(t, first, 8, 30, func(dev device.Device, at, all int, lose bool) {
		if s := work(dev); lose && at < all/2 && s.Device != pando.CPU {
			t.Errorf("the device is lost at operation %d: still on %v", at, s.Device)
		}
	})
}
