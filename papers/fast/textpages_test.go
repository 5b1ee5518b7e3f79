package fast

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// Pages of strings that change are a map in order.
func TestTextPages(t *testing.T) {
	rng := seed.Rand(t)
	tree, model := NewTextPages(), map[string]uint64{}
	var asked []string
	for i := range 20_000 {
		k := fmt.Sprintf("https://%c/%d", 'a'+rng.IntN(5), rng.IntN(9000))
		if rng.IntN(4) == 0 {
			k = fmt.Sprint(rng.IntN(300))
		}
		if asked = append(asked, k, k+"x"); rng.IntN(50) == 0 {
			k = ""
		}
		tree.Set(k, uint64(i))
		model[k] = uint64(i)
	}
	if tree.Len() != len(model) {
		t.Fatalf("%d entries, want %d", tree.Len(), len(model))
	}
	vals, found := make([]uint64, len(asked)), make([]bool, len(asked))
	tree.GetBatch(asked, vals, found)
	for i, k := range asked {
		want, ok := model[k]
		if v, got := tree.Get(k); v != want || got != ok || vals[i] != want || found[i] != ok {
			t.Fatalf("%q: %d, %t; by the batch %d, %t; want %d, %t", k, v, got, vals[i], found[i], want, ok)
		}
	}
	var keys []string
	tree.Scan(func(k string, v uint64) bool {
		if v != model[k] {
			t.Fatalf("%q has %d, want %d", k, v, model[k])
		}
		keys = append(keys, k)
		return true
	})
	if !slices.Equal(keys, slices.Sorted(maps.Keys(model))) {
		t.Fatal("keys are not in order, or not all")
	}
}
