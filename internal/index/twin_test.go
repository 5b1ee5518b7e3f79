package index

import (
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
)

// Auto measures, changes nothing by that, and leaves a GPU out that is slower: the
// interpreter always is.
func TestTwinSettles(t *testing.T) {
	old := SampleKeys
	SampleKeys = 4096
	defer func() { SampleKeys = old }()
	const n = 5000
	tree, err := bplus.Load(n, func(lo int, keys, vals []uint64) {
		for i := range keys {
			keys[i], vals[i] = uint64(lo+i)*7, uint64(lo+i)
		}
	}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	tw, err := twin.New(tree, ptx.New(), twin.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &twinned[uint64]{&codes[uint64]{tree, order.TypeOf[uint64](), 1}, tw}
	if m.settle(true) {
		t.Error("the interpreter is faster than the CPU")
	}
	if err := tw.Down(); err != nil {
		t.Error(err)
	}
	for i := range uint64(n) {
		if v, ok := m.get(order.Probe{Code: i * 7}); v != i || !ok {
			t.Fatalf("key %d has %d, %t", i*7, v, ok)
		}
	}
	m.Close()
}
