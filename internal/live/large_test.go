package live_test

import (
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// A batch that is split before it is sorted sets the last value of each key, whatever
// the widths of keys and values, and leaves the caller's slices as they were.
func TestLargeBatch(t *testing.T) {
	t.Run("uint64", largeBatch[uint64, uint64])
	t.Run("int64", largeBatch[int64, uint64])
	t.Run("uint64 and narrow values", largeBatch[uint64, uint32])
	t.Run("int32 and wide values", largeBatch[int32, uint64])
	t.Run("uint32", largeBatch[uint32, uint32])
	t.Run("uint64 without values", largeBatch[uint64, struct{}])
}

func largeBatch[K interface {
	order.Key
	int32 | int64 | uint32 | uint64
}, V comparable](t *testing.T) {
	rng := seed.Rand(t)
	const n = order.SplitLeast + 5000
	for _, workers := range []int{1, 3} {
		m, err := newMap[V](index.KeyTypeOf[K](), index.Config{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		keys, vals, model := make([]K, n), make([]V, n), map[K]V{}
		for i := range keys {
			keys[i] = K(rng.Uint64N(2*n)) << 14
			if rng.IntN(2) == 0 {
				keys[i] = -keys[i]
			}
			switch v := any(&vals[i]).(type) {
			case *uint32:
				*v = rng.Uint32()
			case *uint64:
				*v = rng.Uint64()
			}
			model[keys[i]] = vals[i]
		}
		hadKeys, hadVals := slices.Clone(keys), slices.Clone(vals)
		if err := m.SetBatch(order.KeysOf(keys), vals); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(keys, hadKeys) || !slices.Equal(vals, hadVals) {
			t.Fatal("the caller's slices are not what they were")
		}
		if err := m.Check(); err != nil || m.Len() != len(model) {
			t.Fatalf("%d entries, not %d: %v", m.Len(), len(model), err)
		}
		got, found := make([]V, n), make([]bool, n)
		m.GetBatch(order.KeysOf(keys), index.ColumnOf(got), found)
		for i, k := range keys {
			if !found[i] || got[i] != model[k] {
				t.Fatalf("key %v has %v (%t), not %v", k, got[i], found[i], model[k])
			}
		}
		m.Close()
	}
}
