package live_test

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// Get and GetBatch on a snapshot of a radix tree find values without a rank: the first one would
// count all entries.
func TestGetOnASnapshotCountsNothing(t *testing.T) {
	var numbers []uint64
	var texts []string
	for i := range 1001 {
		numbers, texts = append(numbers, uint64(i)), append(texts, fmt.Sprint(i))
	}
	check := func(name string, key index.KeyType, cfg index.Config, keys order.Keys, probe func(i int) order.Probe) {
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
			live.Unranked(f)
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
			vals, found := make([]uint64, 1001), make([]bool, 1001)
			if hits := ix.GetBatch(keys, index.ColumnOf(vals), found); hits != 1000 || vals[17] != 17 || found[1000] {
				t.Errorf("GetBatch finds %d; %d at 17; found[1000] is %t", hits, vals[17], found[1000])
			}
		})
	}
	check("strings", index.KeyTypeOf[string](), index.Config{}, order.KeysOf(texts), func(i int) order.Probe { return order.Probe{Text: fmt.Sprint(i)} })
	check("numbers", index.KeyTypeOf[uint64](), index.Config{Layout: "radix"}, order.KeysOf(numbers), func(i int) order.Probe { return order.Probe{Code: uint64(i)} })
}
