package concurrent_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// batchSizes are those around a group of queries that walk together, and
// around the size from which a batch is shared out to workers.
var batchSizes = []int{0, 1, 15, 16, 17, 1000, 5000, 20_000}

// Batches of any size, on any number of workers and every path, give what as
// many single questions give.
func TestBatchesOfEverySize(t *testing.T) {
	t.Run("uint64 pairs", batches(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("uint64 column", batches(facetest.Integers[uint64](), facetest.Uint32Values))
	t.Run("uint64 rows", batches(facetest.Integers[uint64](), facetest.StringValues))
	t.Run("uint32 pairs", batches(facetest.Integers[uint32](), facetest.Uint32Values))
	t.Run("int16 pairs", batches(facetest.Integers[int16](), facetest.Uint32Values))
	t.Run("float32 column", batches(facetest.Float32s[float32](), facetest.Uint64Values))
	t.Run("string", batches(facetest.Strings[string](), facetest.Uint64Values))
}

func batches[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := facetest.ManyEntries(3000, d, v, rng)
		m := facetest.NewModel(keys, vals, v.Same)
		asked := facetest.Probes(m, d, slices.Max(batchSizes), rng)
		rng.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		want := answersTo(m, asked)
		for _, layout := range facetest.Layouts[K](v) {
			for i, workers := range []int{1, 2, 5} {
				if !seed.Long() && rng.IntN(3) != i {
					continue
				}
				ix := facetest.MustFreeze(t, keys, vals, pando.Layout(layout), pando.Workers(workers))
				for _, n := range batchSizes {
					err := facetest.OnEachPath(func() error { return checkAnswers(ix, asked[:n], want, v.Same) })
					if err != nil {
						t.Fatalf("%v, %d workers, batch of %d: %v", layout, workers, n, err)
					}
				}
				ix.Close()
			}
		}
	}
}

// batchAnswers is what a batch must give.
type batchAnswers[V any] struct {
	vals  []V
	found []bool
	ranks []int
}

func answersTo[K pando.Key, V any](m *facetest.Model[K, V], asked []K) batchAnswers[V] {
	n := len(asked)
	a := batchAnswers[V]{make([]V, n), make([]bool, n), make([]int, n)}
	for i, k := range asked {
		a.vals[i], a.found[i] = m.Get(k)
		a.ranks[i] = m.Rank(k)
	}
	return a
}

// checkAnswers asks a batch, with results in slices that are too long by one.
func checkAnswers[K pando.Key, V any](ix *pando.Frozen[K, V], asked []K, want batchAnswers[V], same func(a, b V) bool) error {
	n := len(asked)
	hits := 0
	for _, f := range want.found[:n] {
		if f {
			hits++
		}
	}
	given := slices.Clone(asked)
	vals, found, ranks := make([]V, n+1), make([]bool, n+1), make([]int, n+1)
	found[n], ranks[n] = true, -7
	for i, f := range want.found[:n] {
		found[i], ranks[i] = !f, -7
	}
	if got := ix.GetBatch(asked, vals, found); got != hits {
		return fmt.Errorf("%d hits, want %d", got, hits)
	}
	ix.RankBatch(asked, ranks)
	if !slices.EqualFunc(vals[:n], want.vals[:n], same) {
		return fmt.Errorf("wrong values")
	}
	if !slices.Equal(found[:n], want.found[:n]) || !slices.Equal(ranks[:n], want.ranks[:n]) {
		return fmt.Errorf("found or ranks wrong")
	}
	if !found[n] || ranks[n] != -7 {
		return fmt.Errorf("written behind the results")
	}
	clear(vals)
	if got := ix.GetBatch(asked, vals, nil); got != hits || !slices.EqualFunc(vals[:n], want.vals[:n], same) {
		return fmt.Errorf("without found: %d hits, want %d, or wrong values", got, hits)
	}
	if !facetest.SameKeys(asked, given) {
		return fmt.Errorf("the keys asked for have changed")
	}
	return nil
}

// Thousands of ranges, which workers copy out side by side.
func TestRangeBatchOnManyWorkers(t *testing.T) {
	t.Run("uint64", rangeBatches(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("float32", rangeBatches(facetest.Float32s[float32](), facetest.Uint64Values))
	t.Run("rows", rangeBatches(facetest.Integers[uint64](), facetest.StringValues))
	t.Run("int16", rangeBatches(facetest.Integers[int16](), facetest.Uint32Values))
	t.Run("string", rangeBatches(facetest.Strings[string](), facetest.Uint64Values))
}

func rangeBatches[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := facetest.ManyEntries(500, d, v, rng)
		m := facetest.NewModel(keys, vals, v.Same)
		ix := facetest.MustFreeze(t, keys, vals, pando.Workers(3))
		defer ix.Close()
		lo := facetest.Probes(m, d, 6000, rng)
		hi := slices.Clone(lo)
		rng.Shuffle(len(hi), func(i, j int) { hi[i], hi[j] = hi[j], hi[i] })
		for _, limit := range []int{-1, 0, 1, 3, math.MaxInt} {
			r := ix.RangeBatch(lo, hi, limit)
			for i := range lo {
				first, end := m.Span(lo[i], hi[i], limit)
				gotKeys, gotVals := r.At(i)
				if !facetest.SameKeys(gotKeys, m.Keys[first:end]) || !slices.EqualFunc(gotVals, m.Vals[first:end], v.Same) {
					t.Fatalf("limit %d, range %d, %v to %v: %d entries, want %d", limit, i, lo[i], hi[i], len(gotKeys), end-first)
				}
			}
		}
		if r := ix.RangeBatch(nil, nil, 0); r.Len() != 0 || len(r.Keys) != 0 {
			t.Errorf("no ranges at all: %+v", r)
		}
	}
}

// What is found for one range can be appended to without harm to the next.
func TestRangesDoNotOverlap(t *testing.T) {
	ix := facetest.MustFreeze(t, []uint64{1, 2, 3, 4}, []uint64{10, 20, 30, 40})
	defer ix.Close()
	r := ix.RangeBatch([]uint64{1, 3}, []uint64{2, 4}, 0)
	keys, vals := r.At(0)
	_, _ = append(keys, 99), append(vals, 99)
	if keys, vals = r.At(1); keys[0] != 3 || vals[0] != 30 {
		t.Errorf("the second range became %d, %d", keys, vals)
	}
	if (&pando.Ranges[uint64, uint64]{}).Len() != 0 {
		t.Error("zero Ranges are not empty")
	}
}

// Values may take the place of the keys they are looked up by, in a batch of
// any size, on any number of workers.
func TestBatchInPlace(t *testing.T) {
	t.Run("pairs", inPlace[uint64]())
	t.Run("column", inPlace[uint64](pando.Layout(pando.Apart)))
	t.Run("signed", inPlace[int64]())
	t.Run("blocked", inPlace[uint32](pando.Layout(pando.Blocked)))
	t.Run("compressed", inPlace[uint32](pando.Layout(pando.Compressed)))
}

func inPlace[K uint32 | int64 | uint64](opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		const n = 30_000
		keys, vals := make([]K, n), make([]K, n)
		for i := range keys {
			keys[i], vals[i] = K(3*i), K(i+1)
		}
		for _, workers := range []int{1, 3} {
			ix := facetest.MustFreeze(t, keys, vals, append(opts, pando.Workers(workers))...)
			for _, size := range []int{1, 100, n} {
				if err := facetest.OnEachPath(func() error {
					asked := slices.Clone(keys[:size])
					if hits := ix.GetBatch(asked, asked, nil); hits != size || !slices.Equal(asked, vals[:size]) {
						return fmt.Errorf("%d keys in place: %d hits, values %d", size, hits, asked[:min(5, size)])
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			ix.Close()
		}
	}
}

// More workers than anyone has are as good as many.
func TestEndlessWorkers(t *testing.T) {
	keys := make([]uint64, 50_000)
	for i := range keys {
		keys[i] = uint64(len(keys)-i) * 3
	}
	ix := facetest.MustFreeze(t, keys, keys, pando.Workers(math.MaxInt))
	defer ix.Close()
	out := make([]uint64, len(keys))
	if hits := ix.GetBatch(keys, out, nil); hits != len(keys) || !slices.Equal(out, keys) {
		t.Errorf("%d of %d keys are found", hits, len(keys))
	}
}
