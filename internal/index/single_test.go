package index

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/order"
)

// unranked is a moment of strings that must not be asked for ranks.
type unranked struct{ *textMoment }

func (unranked) Seek(order.Probe) (int, bool) { panic("Seek counts all entries") }

// Get on a snapshot of a radix tree finds its value without a rank: the first one would count all
// entries.
func TestGetOnASnapshotCountsNothing(t *testing.T) {
	check := func(name string, key KeyType, cfg Config, probe func(i int) order.Probe, wrap func(moment) moment) {
		t.Run(name, func(t *testing.T) {
			m, err := newMap[uint64](key, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for i := range 1000 {
				if err := m.Set(probe(i), uint64(i)); err != nil {
					t.Fatal(err)
				}
			}
			f, err := m.Freeze()
			if err != nil {
				t.Fatal(err)
			}
			f.at = wrap(f.at)
			ix, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Release()
			for i := range 1001 {
				if v, ok := ix.Get(probe(i)); ok != (i < 1000) || ok && v.Bits != uint64(i) {
					t.Fatalf("Get(%v) = %d, %t", probe(i), v.Bits, ok)
				}
			}
		})
	}
	check("strings", KeyTypeOf[string](), Config{}, func(i int) order.Probe { return order.Probe{Text: fmt.Sprint(i)} },
		func(at moment) moment { return unranked{at.(*textMoment)} })
	check("numbers", KeyTypeOf[uint64](), Config{Layout: "radix"}, func(i int) order.Probe { return order.Probe{Code: uint64(i)} },
		func(at moment) moment {
			d := at.(*digitMoment)
			return &digitMoment{unranked{d.moment.(*textMoment)}, d.digits}
		})
}
