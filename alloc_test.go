package pando_test

import (
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Questions allocate nothing, neither single ones nor batches.
func TestQuestionsAllocateNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	t.Run("uint64", allocations(facetest.Integers[uint64](), facetest.Uint64Values, pando.Pairs, pando.Apart, pando.Blocked))
	t.Run("uint32", allocations(facetest.Integers[uint32](), facetest.Uint32Values, pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed))
	t.Run("float64 rows", allocations(facetest.Float64s[float64](), facetest.StringValues, pando.Apart, pando.Compressed))
	t.Run("strings", stringAllocations)
}

func allocations[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], layouts ...pando.LayoutKind) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := facetest.ManyEntries(5000, d, v, rng)
		asked := facetest.Probes(facetest.NewModel(keys, vals, v.Same), d, 20_000, rng)
		got, found, ranks := make([]V, len(asked)), make([]bool, len(asked)), make([]int, len(asked))
		k := keys[17]
		for _, layout := range layouts {
			ix := facetest.MustFreeze(t, keys, vals, pando.Layout(layout), pando.Workers(2))
			for _, c := range []facetest.Call{
				{Name: "Get", Do: func() { ix.Get(k) }},
				{Name: "Rank", Do: func() { ix.Rank(k) }},
				{Name: "Floor", Do: func() { ix.Floor(k) }},
				{Name: "Ceil", Do: func() { ix.Ceil(k) }},
				{Name: "Count", Do: func() { ix.Count(k, d.Ends[0]) }},
				{Name: "At", Do: func() { ix.At(17) }},
				{Name: "Min", Do: func() { ix.Min() }},
				{Name: "small GetBatch", Do: func() { ix.GetBatch(asked[:100], got, found) }},
				{Name: "small GetBatch without found", Do: func() { ix.GetBatch(asked[:100], got, nil) }},
				{Name: "small RankBatch", Do: func() { ix.RankBatch(asked[:100], ranks) }},
				{Name: "GetBatch", Do: func() { ix.GetBatch(asked, got, found) }},
				{Name: "RankBatch", Do: func() { ix.RankBatch(asked, ranks) }},
			} {
				// The average is rounded down: a pool emptied by a collection in
				// between may cost one allocation.
				if n := testing.AllocsPerRun(50, c.Do); n > 0 {
					t.Errorf("%v, %s: %v allocations", layout, c.Name, n)
				}
			}
			ix.Close()
		}
	}
}

// BenchmarkFrozen asks an index that fits the cache, to show that nothing is
// allocated; for speed see the bench module.

// Batches of strings allocate nothing either, in whatever form they come. What
// returns keys copies them.
func stringAllocations(t *testing.T) {
	rng := seed.Rand(t)
	d, v := facetest.Strings[string](), facetest.Uint64Values
	keys, vals := facetest.ManyEntries(5000, d, v, rng)
	asked := facetest.Probes(facetest.NewModel(keys, vals, v.Same), d, 20_000, rng)
	var data []byte
	offsets := []int32{0}
	for _, k := range asked {
		data = append(data, k...)
		offsets = append(offsets, int32(len(data)))
	}
	got, found, ranks := make([]uint64, len(asked)), make([]bool, len(asked)), make([]int, len(asked))
	for _, layout := range []pando.LayoutKind{pando.Compressed, pando.Apart} {
		ix := facetest.MustFreeze(t, keys, vals, pando.Layout(layout), pando.Workers(2))
		for _, c := range []facetest.Call{
			{Name: "Get", Do: func() { ix.Get(keys[17]) }},
			{Name: "Rank", Do: func() { ix.Rank(keys[17]) }},
			{Name: "Count", Do: func() { ix.Count(keys[17], keys[18]) }},
			{Name: "small GetBatch", Do: func() { ix.GetBatch(asked[:100], got, found) }},
			{Name: "GetBatch", Do: func() { ix.GetBatch(asked, got, found) }},
			{Name: "GetBatchBytes", Do: func() { ix.GetBatchBytes(data, offsets, got, found) }},
			{Name: "RankBatch", Do: func() { ix.RankBatch(asked, ranks) }},
			{Name: "CountBatch", Do: func() { ix.CountBatch(asked, asked, ranks) }},
		} {
			if n := testing.AllocsPerRun(50, c.Do); n > 0 {
				t.Errorf("%v, %s: %v allocations", layout, c.Name, n)
			}
		}
		ix.Close()
	}
}

func BenchmarkFrozen(b *testing.B) {
	ix := counted(b, 100_000)
	defer ix.Close()
	keys := make([]uint64, 1024)
	for i := range keys {
		keys[i] = uint64(i*7919) % 100_000
	}
	vals, found, ranks := make([]uint64, len(keys)), make([]bool, len(keys)), make([]int, len(keys))
	for _, c := range []facetest.Call{
		{Name: "Get", Do: func() {
			for i, k := range keys {
				vals[i], found[i] = ix.Get(k)
			}
		}},
		{Name: "GetBatch", Do: func() { ix.GetBatch(keys, vals, found) }},
		{Name: "RankBatch", Do: func() { ix.RankBatch(keys, ranks) }},
		{Name: "Range", Do: func() { facetest.Drain(ix.Range(500, 1523)) }},
	} {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Do()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
		})
	}
}
