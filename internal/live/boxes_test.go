package live_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// A map holds as many values as it has entries, however it was made.
func TestLoadedMapHoldsItsValues(t *testing.T) {
	key := index.KeyTypeOf[uint64]()
	for _, n := range []int{0, 1, 252, 253, 5000} {
		m, err := loadMap(key, n, func(lo int, keys order.Keys, vals []string) {
			ks := make([]uint64, len(vals))
			for i := range ks {
				ks[i], vals[i] = uint64(lo+i), "value"
			}
			order.SetKeys(keys, ks)
		}, index.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if held, _ := live.HeldValues(m.Map); held != int64(n) || m.Len() != n {
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

// Values that were exchanged or deleted are gone soon after, though nobody writes any
// more: a tree that is idle keeps nothing alive.
func TestIdleMapKeepsNothing(t *testing.T) {
	changes := map[string]func(m typed[string], keys order.Keys, vals []string){
		"SetBatch":    func(m typed[string], keys order.Keys, vals []string) { m.SetBatch(keys, vals) },
		"DeleteBatch": func(m typed[string], keys order.Keys, _ []string) { m.DeleteBatch(keys, nil) },
		"DeleteRange": func(m typed[string], _ order.Keys, _ []string) { m.DeleteRange(keyOf(0), keyOf(9999)) },
		"Set":         func(m typed[string], _ order.Keys, _ []string) { m.Set(keyOf(7), "seven") },
		"Snapshot": func(m typed[string], keys order.Keys, vals []string) {
			s, _ := m.Freeze()
			m.SetBatch(keys, vals)
			s.Drop()
		},
	}
	for _, layout := range []string{"strings", "digits", "bplus"} {
		for name, change := range changes {
			t.Run(layout+"/"+name, func(t *testing.T) {
				const n = 3000
				m, codes, texts, vals := mapOf[string](t, layout), make([]uint64, n), make([]string, n), make([]string, n)
				for i := range n {
					codes[i], texts[i], vals[i] = uint64(i), keyOf(i).Text, fmt.Sprint(i)
				}
				keys := order.KeysOf(codes)
				if layout == "strings" {
					keys = order.KeysOf(texts)
				}
				m.SetBatch(keys, vals)
				change(m, keys, vals)
				held := func() int64 { n, _ := live.HeldValues(m.Map); return n }
				for end := time.Now().Add(20 * time.Second); held() != int64(m.Len()); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d values are held for %d entries", held(), m.Len())
					}
				}
			})
		}
	}
}
