package pando_test

import (
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// Questions allocate nothing, neither single ones nor batches.
func TestQuestionsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	t.Run("uint64 pairs", allocations(integers[uint64](), uint64Values, pando.Pairs))
	t.Run("uint64 column", allocations(integers[uint64](), uint64Values, pando.Apart))
	t.Run("uint64 rows", allocations(integers[uint64](), stringValues, pando.Apart))
	t.Run("int64 pairs", allocations(integers[int64](), uint64Values, pando.Pairs))
	t.Run("int64 column", allocations(integers[int64](), uint32Values, pando.Apart))
	t.Run("int64 rows", allocations(integers[int64](), stringValues, pando.Apart))
	t.Run("float64 pairs", allocations(float64s[float64](), uint64Values, pando.Pairs))
	t.Run("float64 column", allocations(float64s[float64](), uint32Values, pando.Apart))
	t.Run("float64 rows", allocations(float64s[float64](), stringValues, pando.Apart))
	t.Run("uint32 pairs", allocations(integers[uint32](), uint32Values, pando.Pairs))
	t.Run("uint32 blocked", allocations(integers[uint32](), uint32Values, pando.Blocked))
	t.Run("int64 blocked", allocations(integers[int64](), uint32Values, pando.Blocked))
	t.Run("uint32 compressed", allocations(integers[uint32](), uint32Values, pando.Compressed))
	t.Run("int64 compressed", allocations(integers[int64](), stringValues, pando.Compressed))
}

func allocations[K pando.Key, V any](d domain[K], v values[V], layout pando.LayoutKind) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := manyEntries(5000, d, v, rng)
		ix := mustFreeze(t, keys, vals, pando.Layout(layout), pando.Workers(2))
		defer ix.Close()
		asked := probes(newModel(keys, vals, v.same), d, 20_000, rng)
		got, found, ranks := make([]V, len(asked)), make([]bool, len(asked)), make([]int, len(asked))
		k := keys[17]
		for _, c := range []call{
			{"Get", func() { ix.Get(k) }},
			{"Rank", func() { ix.Rank(k) }},
			{"Floor", func() { ix.Floor(k) }},
			{"Ceil", func() { ix.Ceil(k) }},
			{"Count", func() { ix.Count(k, d.ends[0]) }},
			{"At", func() { ix.At(17) }},
			{"Min", func() { ix.Min() }},
			{"small GetBatch", func() { ix.GetBatch(asked[:100], got, found) }},
			{"small GetBatch without found", func() { ix.GetBatch(asked[:100], got, nil) }},
			{"small RankBatch", func() { ix.RankBatch(asked[:100], ranks) }},
			{"GetBatch", func() { ix.GetBatch(asked, got, found) }},
			{"RankBatch", func() { ix.RankBatch(asked, ranks) }},
		} {
			// The average is rounded down: a pool emptied by a collection in
			// between may cost one allocation.
			if n := testing.AllocsPerRun(50, c.do); n > 0 {
				t.Errorf("%s: %v allocations", c.name, n)
			}
		}
	}
}

// BenchmarkFrozen asks an index that fits the cache, to show that nothing is
// allocated; for speed see the bench module.
func BenchmarkFrozen(b *testing.B) {
	ix := counted(b, 100_000)
	defer ix.Close()
	keys := make([]uint64, 1024)
	for i := range keys {
		keys[i] = uint64(i*7919) % 100_000
	}
	vals, found, ranks := make([]uint64, len(keys)), make([]bool, len(keys)), make([]int, len(keys))
	for _, c := range []call{
		{"Get", func() {
			for i, k := range keys {
				vals[i], found[i] = ix.Get(k)
			}
		}},
		{"GetBatch", func() { ix.GetBatch(keys, vals, found) }},
		{"RankBatch", func() { ix.RankBatch(keys, ranks) }},
		{"Range", func() { drain(ix.Range(500, 1523)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.do()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
		})
	}
}
