package pando_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// batchSizes are those around a group of queries that walk together, and
// around the size from which a batch is shared out to workers.
var batchSizes = []int{0, 1, 15, 16, 17, 1000, 5000, 20_000}

// Batches of any size, on any number of workers and every path, give what as
// many single questions give.
func TestBatchesOfEverySize(t *testing.T) {
	t.Run("uint64 pairs", batches(integers[uint64](), uint64Values))
	t.Run("int64 column", batches(integers[int64](), uint32Values))
	t.Run("float64 pairs", batches(float64s[float64](), uint64Values))
	t.Run("uint64 rows", batches(integers[uint64](), stringValues))
	t.Run("uint32 pairs", batches(integers[uint32](), uint32Values))
	t.Run("int16 pairs", batches(integers[int16](), uint32Values))
	t.Run("float32 column", batches(float32s[float32](), uint64Values))
	t.Run("uint8 rows", batches(integers[uint8](), stringValues))
	t.Run("uint64 empty", batches(integers[uint64](), emptyValues))
	t.Run("string", batches(texts[string](), uint64Values))
}

func batches[K pando.Key, V any](d domain[K], v values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := manyEntries(3000, d, v, rng)
		m := newModel(keys, vals, v.same)
		asked := probes(m, d, slices.Max(batchSizes), rng)
		rng.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		want := answersTo(m, asked)
		for _, layout := range layouts[K](v) {
			for _, workers := range []int{1, 2, 5} {
				ix := mustFreeze(t, keys, vals, pando.Layout(layout), pando.Workers(workers))
				for _, n := range batchSizes {
					err := onEachPath(func() error { return checkAnswers(ix, asked[:n], want, v.same) })
					if err != nil {
						t.Fatalf("%v, %d workers, batch of %d: %v", layout, workers, n, err)
					}
				}
				ix.Close()
			}
		}
	}
}

// manyEntries gives n entries with keys from all over a domain, many of them
// more than once.
func manyEntries[K pando.Key, V any](n int, d domain[K], v values[V], rng *rand.Rand) ([]K, []V) {
	keys, vals := make([]K, n), make([]V, n)
	sets := keySets(d, rng)
	for i := range keys {
		keys[i] = sets[rng.IntN(4)].key(i, n)
		vals[i] = v.of(i)
	}
	return keys, vals
}

// batchAnswers is what a batch must give.
type batchAnswers[V any] struct {
	vals  []V
	found []bool
	ranks []int
}

func answersTo[K pando.Key, V any](m *model[K, V], asked []K) batchAnswers[V] {
	n := len(asked)
	a := batchAnswers[V]{make([]V, n), make([]bool, n), make([]int, n)}
	for i, k := range asked {
		a.vals[i], a.found[i] = m.get(k)
		a.ranks[i] = m.rank(k)
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
	if !sameKeys(asked, given) {
		return fmt.Errorf("the keys asked for have changed")
	}
	return nil
}

// Thousands of ranges, which workers copy out side by side.
func TestRangeBatchOnManyWorkers(t *testing.T) {
	t.Run("uint64", rangeBatches(integers[uint64](), uint64Values))
	t.Run("float64", rangeBatches(float64s[float64](), stringValues))
	t.Run("int16", rangeBatches(integers[int16](), uint32Values))
	t.Run("string", rangeBatches(texts[string](), uint64Values))
}

func rangeBatches[K pando.Key, V any](d domain[K], v values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		keys, vals := manyEntries(500, d, v, rng)
		m := newModel(keys, vals, v.same)
		ix := mustFreeze(t, keys, vals, pando.Workers(3))
		defer ix.Close()
		lo := probes(m, d, 6000, rng)
		hi := slices.Clone(lo)
		rng.Shuffle(len(hi), func(i, j int) { hi[i], hi[j] = hi[j], hi[i] })
		for _, limit := range []int{-1, 0, 1, 3, 1 << 40} {
			r := ix.RangeBatch(lo, hi, limit)
			for i := range lo {
				first, end := m.span(lo[i], hi[i], limit)
				gotKeys, gotVals := r.At(i)
				if !sameKeys(gotKeys, m.keys[first:end]) || !slices.EqualFunc(gotVals, m.vals[first:end], v.same) {
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
	ix := mustFreeze(t, []uint64{1, 2, 3, 4}, []uint64{10, 20, 30, 40})
	defer ix.Close()
	r := ix.RangeBatch([]uint64{1, 3}, []uint64{2, 4}, 0)
	keys, vals := r.At(0)
	_, _ = append(keys, 99), append(vals, 99)
	if keys, vals = r.At(1); keys[0] != 3 || vals[0] != 30 {
		t.Errorf("the second range became %d, %d", keys, vals)
	}
	if (&pando.Ranges[int, int]{}).Len() != 0 {
		t.Error("zero Ranges are not empty")
	}
}

// A batch may be asked to put its results over its keys: then it must give
// the right answer, or say that it cannot.
func TestBatchInPlace(t *testing.T) {
	const n = 10_000
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = uint64(3*i), uint64(i+1)
	}
	ix := mustFreeze(t, keys, vals)
	defer ix.Close()
	err := onEachPath(func() (err error) {
		defer func() {
			if v := recover(); v != nil && !strings.HasPrefix(fmt.Sprint(v), "pando: ") {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		asked := slices.Clone(keys[:100])
		ix.GetBatch(asked, asked, nil)
		if !slices.Equal(asked, vals[:100]) {
			return fmt.Errorf("GetBatch(keys, keys, nil) gives %d, want %d", asked[:5], vals[:5])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
