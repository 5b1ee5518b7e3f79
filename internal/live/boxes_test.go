package live_test

import (
	"testing"
	"time"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// A map holds as many values as it has entries, however it was made.
func TestLoadedMapHoldsItsValues(t *testing.T) {
	t.Run("boxes", holdsLoaded[boxed])
	t.Run("stored", holdsLoaded[string])
	t.Run("of one size", holdsLoaded[[16]byte])
}

func holdsLoaded[V comparable](t *testing.T) {
	key := index.KeyTypeOf[uint64]()
	for _, n := range []int{0, 1, 252, 253, 5000} {
		m, err := loadMap(key, n, func(lo int, keys order.Keys, vals []V) {
			ks := make([]uint64, len(vals))
			for i := range ks {
				ks[i], vals[i] = uint64(lo+i), value[V](lo+i)
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
			if v, ok := m.Get(order.Probe{Code: uint64(i)}); v != value[V](i) || !ok {
				t.Fatalf("key %d of %d: %v, %t", i, n, v, ok)
			}
		}
		m.Close()
	}
}

// Values that were exchanged or deleted are gone soon after, though nobody writes any
// more: a tree that is idle keeps nothing alive.
func TestIdleMapKeepsNothing(t *testing.T) {
	t.Run("boxes", keepsNothing[boxed])
	t.Run("stored", keepsNothing[string])
	t.Run("of one size", keepsNothing[[16]byte])
}

func keepsNothing[V comparable](t *testing.T) {
	changes := map[string]func(m typed[V], keys order.Keys, vals []V){
		"SetBatch":    func(m typed[V], keys order.Keys, vals []V) { m.SetBatch(keys, vals) },
		"DeleteBatch": func(m typed[V], keys order.Keys, _ []V) { m.DeleteBatch(keys, nil) },
		"DeleteRange": func(m typed[V], _ order.Keys, _ []V) { m.DeleteRange(keyOf(0), keyOf(9999)) },
		"Set":         func(m typed[V], _ order.Keys, _ []V) { m.Set(keyOf(7), value[V](-7)) },
		"Snapshot": func(m typed[V], keys order.Keys, vals []V) {
			s, _ := m.Freeze()
			m.SetBatch(keys, vals)
			s.Drop()
		},
	}
	for _, layout := range []string{"strings", "digits", "bplus"} {
		for name, change := range changes {
			t.Run(layout+"/"+name, func(t *testing.T) {
				const n = 3000
				m, codes, texts, vals := mapOf[V](t, layout), make([]uint64, n), make([]string, n), make([]V, n)
				for i := range n {
					codes[i], texts[i], vals[i] = uint64(i), keyOf(i).Text, value[V](i)
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
