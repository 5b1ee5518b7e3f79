package live_test

import (
	"testing"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// Values may take the place of their keys, also where the tree has to look twice.
func TestGetBatchInPlace(t *testing.T) {
	m := mapOf[string](t, "strings")
	keys := []string{keyOf(1).Text, keyOf(2).Text, keyOf(3).Text}
	m.Set(keyOf(1), "one")
	m.Set(keyOf(3), "three")
	live.PutBetween(m.Map, live.Between{Twice: true})
	if hits := m.GetBatch(order.KeysOf(keys), index.ColumnOf(keys), nil); hits != 2 || keys[0] != "one" || keys[1] != "" || keys[2] != "three" {
		t.Errorf("%d hits, %q", hits, keys)
	}
}
