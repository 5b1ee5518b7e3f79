package bplus

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// Places that a mirror has not found, but made up: the tree answers all the same.
func TestPlacesThatAreNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for i := range uint64(2000) {
		tree.Set(3*i, i)
	}
	most := uint64(tree.leaves.pool.Most())
	makers := map[string]func() (place, word uint64){
		"zero":                   func() (uint64, uint64) { return 0, 0 },
		"all ones":               func() (uint64, uint64) { return ^uint64(0), ^uint64(0) },
		"anything":               func() (uint64, uint64) { return rng.Uint64(), rng.Uint64() },
		"the first behind":       func() (uint64, uint64) { return most << 8, 1 << simd.WordSequence },
		"the last, never in use": func() (uint64, uint64) { return (most-1)<<8 | 255, 0 },
		"far behind":             func() (uint64, uint64) { return rng.Uint64() | 1<<60, 1 << simd.WordSequence },
	}
	const n = 500
	keys, places, words := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	vals, found := make([]uint64, n), make([]bool, n)
	for name, make := range makers {
		for i := range keys {
			keys[i] = rng.Uint64N(6500)
			places[i], words[i] = make()
		}
		tree.GetPlaced(keys, places, words, vals, found)
		for i, k := range keys {
			want, ok := tree.Get(k)
			if vals[i] != want || found[i] != ok {
				t.Errorf("%s: key %d at place %#x is %d, %t, want %d, %t", name, k, places[i], vals[i], found[i], want, ok)
			}
		}
	}
}

// BenchmarkGetPlaced reads lines at places that are right, as those of a mirror
// that is up to date.
func BenchmarkGetPlaced(b *testing.B) {
	for name, entries := range map[string]int{"in cache": 10_000, "in memory": 8 << 20} {
		tree, err := Load(entries, func(lo int, keys, vals []uint64) {
			for i := range keys {
				keys[i], vals[i] = uint64(lo+i)*3, uint64(lo+i)
			}
		}, 0, 2)
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		const n = 1 << 16
		keys, places, words := make([]uint64, n), make([]uint64, n), make([]uint64, n)
		vals, found := make([]uint64, n), make([]bool, n)
		for i := range keys {
			keys[i] = rng.Uint64N(uint64(entries)) * 3
			x, line, word := tree.seek(keys[i])
			places[i], words[i] = uint64(x)<<8|uint64(line), word
		}
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if hits, stale := tree.GetPlaced(keys, places, words, vals, found); hits != n || stale != 0 {
					b.Fatal(hits, stale)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
		})
		tree.Close()
	}
}
