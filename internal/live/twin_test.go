package live_test

import (
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/twin"
)

// Auto measures, changes nothing by that, and leaves a GPU out that is slower: the
// interpreter always is.
func TestTwinSettles(t *testing.T) {
	old := index.SampleKeys
	index.SampleKeys = 4096
	defer func() { index.SampleKeys = old }()
	const n = 5000
	m, err := live.NewTwinMap(n, func(lo int, keys, vals []uint64) {
		for i := range keys {
			keys[i], vals[i] = uint64(lo+i)*7, uint64(lo+i)
		}
	}, ptx.New(), twin.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.Settle() {
		t.Error("the interpreter is faster than the CPU")
	}
	if err := m.Down(); err != nil {
		t.Error(err)
	}
	for i := range uint64(n) {
		if v, ok := m.Get(i * 7); v != i || !ok {
			t.Fatalf("key %d has %d, %t", i*7, v, ok)
		}
	}
	m.Close()
}

// A batch of lookups whose values go where the keys were has the right answers also
// if the GPU fails when it has given some.
func TestValuesOverKeysOfLostGPU(t *testing.T) {
	const n, asked = 1000, 70_000
	lookups := func(plan faulty.Plan) (copies int, down error) {
		dev := faulty.New(ptx.New(), plan)
		m, err := live.NewTwinMap(n, func(lo int, keys, vals []uint64) {
			for i := range keys {
				keys[i], vals[i] = uint64(lo+i)*2, uint64(lo+i)+1e6
			}
		}, dev, twin.Options{Workers: 1, Least: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		keys, found := make([]uint64, asked), make([]bool, asked)
		for i := range keys {
			keys[i] = uint64(i % (2 * n))
		}
		hits := m.GetBatch(keys, arena.Bytes(keys), found)
		if hits != asked/2 {
			t.Errorf("%d hits, want %d", hits, asked/2)
		}
		for i, v := range keys {
			k := i % (2 * n)
			if want := uint64(k/2) + 1e6; found[i] != (k%2 == 0) || found[i] && v != want {
				t.Fatalf("lookup %d of key %d has found %d, %t", i, k, v, found[i])
			}
		}
		return dev.Count(faulty.CopyOut), m.Down()
	}
	copies, down := lookups(faulty.Plan{})
	if down != nil {
		t.Fatal(down)
	}
	if _, down = lookups(faulty.Plan{Op: faulty.CopyOut, At: copies}); down == nil {
		t.Error("no copy has failed")
	}
}
