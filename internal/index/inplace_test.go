package index

import (
	"testing"

	"github.com/pando-index/pando/internal/order"
)

// twiceMap is a map whose batches of lookups always have to be repeated.
type twiceMap struct{ keyMap }

func (m twiceMap) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) int {
	m.keyMap.getBatch(keys, vals, size, found, use)
	return m.keyMap.getBatch(keys, vals, size, found, use)
}

// Values may take the place of their keys, also where the tree has to look twice.
func TestGetBatchInPlace(t *testing.T) {
	m := mapOf[string](t, "strings")
	keys := []string{keyOf(1).Text, keyOf(2).Text, keyOf(3).Text}
	m.Set(keyOf(1), "one")
	m.Set(keyOf(3), "three")
	m.keyMap = twiceMap{m.keyMap}
	if hits := m.GetBatch(order.KeysOf(keys), ColumnOf(keys), nil); hits != 2 || keys[0] != "one" || keys[1] != "" || keys[2] != "three" {
		t.Errorf("%d hits, %q", hits, keys)
	}
}
