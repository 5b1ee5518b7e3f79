package index

import (
	"testing"

	"github.com/pando-index/pando/internal/order"
)

// A map holds as many values as it has entries, however it was made.
func TestLoadedMapHoldsItsValues(t *testing.T) {
	key := KeyTypeOf[uint64]()
	for _, n := range []int{0, 1, 252, 253, 5000} {
		m, err := LoadMap(key, n, func(lo int, keys order.Keys, vals []string) {
			ks := make([]uint64, len(vals))
			for i := range ks {
				ks[i], vals[i] = uint64(lo+i), "value"
			}
			setKeys(keys, ks)
		}, Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if held := m.boxes.held.Load(); held != int64(n) || m.Len() != n {
			t.Errorf("%d entries: %d values are held, %d entries", n, held, m.Len())
		}
		for i := range n {
			if v, ok := m.Get(order.Probe{Code: uint64(i)}); v != "value" || !ok {
				t.Fatalf("key %d of %d: %q, %t", i, n, v, ok)
			}
		}
		m.Close()
	}
}
