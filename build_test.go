package pando_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Indexes of hundreds of thousands of entries: several workers build them, and
// they are large enough for huge pages.
func TestLargeIndex(t *testing.T) {
	t.Run("uint64 pairs", large(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("int64 column", large(facetest.Integers[int64](), facetest.Uint32Values))
	t.Run("float32 pairs", large(facetest.Float32s[float32](), facetest.Int32Values))
	t.Run("float64 rows", large(facetest.Float64s[float64](), facetest.StringValues))
}

func large[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		n := 300_000 + rng.IntN(1000)
		if !seed.Long() {
			n /= 4
		}
		keys, vals := facetest.ManyEntries(n, d, v, rng)
		m := facetest.NewModel(keys, vals, v.Same)
		for i, pages := range []pando.PageMode{pando.HugeAll, pando.HugeInner, pando.SmallPages} {
			for j, in := range []struct {
				order string
				keys  []K
				vals  []V
			}{{"unsorted", keys, vals}, {"sorted", m.Keys, m.Vals}} {
				if !seed.Long() && (i+j)%2 > 0 {
					continue
				}
				workers := []int{5, 1, 2}[i]
				ix := facetest.MustFreeze(t, in.keys, in.vals, pando.HugePages(pages), pando.Workers(workers))
				if err := facetest.CheckIndex(ix, m, facetest.Probes(m, d, 500, rng)); err != nil {
					t.Fatalf("%v, %s, %d workers: %v", pages, in.order, workers, err)
				}
				if got := ix.Stats(); got.Pages != pages || got.Workers != workers {
					t.Errorf("Stats say %v, %d workers; want %v, %d", got.Pages, got.Workers, pages, workers)
				}
				ix.Close()
			}
		}
	}
}

// One entry out of place, wherever it is, must be seen: at the ends, and at
// the borders between what one worker and the next look at.
func TestOneDescentAnywhere(t *testing.T) {
	t.Run("uint64 pairs", oneDescent(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("float64 rows", oneDescent(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("int32 column", oneDescent(facetest.Integers[int32](), facetest.Uint64Values))
	t.Run("string", oneDescent(facetest.Strings[string](), facetest.Uint64Values))
}

func oneDescent[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		const n = 2*65536 + 3
		rng := seed.Rand(t)
		sorted, vals := make([]K, n), make([]V, n)
		for i := range sorted {
			sorted[i], vals[i] = d.Num(1002+i/2*2), v.Of(i)
		}
		if !slices.IsSorted(sorted) {
			t.Fatal("the test's keys are not sorted")
		}
		places := []int{1, n - 1}
		for _, border := range []int{8192, 16384, 32768, 65536, 2 * 65536} {
			places = append(places, border-1, border, border+1)
		}
		if !seed.Long() {
			places = []int{[]int{1, 16384, n - 1}[rng.IntN(3)], 65536}
		}
		for _, at := range places {
			keys := slices.Clone(sorted)
			keys[at] = d.Num(1001) // below all others
			ix := facetest.MustFreeze(t, keys, vals, pando.Workers(2))
			m := &facetest.Model[K, V]{Same: v.Same}
			m.Keys = slices.Concat(keys[at:at+1], keys[:at], keys[at+1:])
			m.Vals = slices.Concat(vals[at:at+1], vals[:at], vals[at+1:])
			if err := facetest.CheckEntries(ix, m); err != nil {
				t.Errorf("entry %d out of place: %v", at, err)
			}
			ix.Close()
		}
	}
}

// Where values take no memory there need be none.
func TestKeysWithoutValues(t *testing.T) {
	t.Run("uint64", keysOnly(facetest.Integers[uint64]()))
	t.Run("string", keysOnly(facetest.Strings[string]()))
}

func keysOnly[K pando.Key](d facetest.Domain[K]) func(t *testing.T) {
	return func(t *testing.T) {
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("panic: %v", v)
			}
		}()
		rng := seed.Rand(t)
		for _, n := range []int{0, 1, 2, 100, 2000} {
			keys, vals := facetest.ManyEntries(n, d, facetest.EmptyValues, rng)
			m := facetest.NewModel(keys, vals, facetest.EmptyValues.Same)
			for _, in := range [][]K{m.Keys, keys} { // sorted, then not
				ix := facetest.MustFreeze[K, struct{}](t, in, nil)
				if err := facetest.CheckIndex(ix, m, facetest.Probes(m, d, 50, rng)); err != nil {
					t.Fatalf("%d keys: %v", n, err)
				}
				ix.Close()
			}
		}
	}
}

func TestFreezeSeq(t *testing.T) {
	ages := map[string]int{"Ada": 36, "Alan": 41, "Grace": 85, "": 7}
	byName, err := pando.FreezeSeq(maps.All(ages))
	if err != nil {
		t.Fatal(err)
	}
	defer byName.Close()
	if got := maps.Collect(byName.All()); !maps.Equal(got, ages) {
		t.Errorf("got %v, want %v", got, ages)
	}
	rng := seed.Rand(t)
	keys, vals := facetest.ManyEntries(3000, facetest.Float64s[float64](), facetest.StringValues, rng)
	m := facetest.NewModel(keys, vals, facetest.StringValues.Same)
	byNumber, err := pando.FreezeSeq(func(yield func(float64, string) bool) {
		for i, k := range keys {
			if !yield(k, vals[i]) {
				return
			}
		}
	}, pando.Layout(pando.Apart))
	if err != nil {
		t.Fatal(err)
	}
	defer byNumber.Close()
	if err := facetest.CheckIndex(byNumber, m, facetest.Probes(m, facetest.Float64s[float64](), 200, rng)); err != nil {
		t.Error(err)
	}
	empty, err := pando.FreezeSeq(maps.All(map[uint64]*int{}))
	if err != nil || empty.Len() != 0 {
		t.Errorf("an empty sequence gives %v", err)
	}
	empty.Close()
}

// Stats say how much memory an index takes, and where.
func TestStatsAddUp(t *testing.T) {
	const n = 100_000
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	ix := facetest.MustFreeze(t, keys, keys, pando.Workers(3))
	s := ix.Stats()
	if s.Len != n || s.Layout != pando.Pairs || s.Fanout != 9 || s.Levels != 5 || s.Workers != 3 || s.Device != pando.CPU {
		t.Errorf("%+v", s)
	}
	if s.LeafBytes != n*16 || s.HeapBytes != 0 || s.ValueBytes != 0 || s.TotalBytes < s.LeafBytes+s.InnerBytes {
		t.Errorf("%+v", s)
	}
	if over := s.TotalBytes - n*16; over > n*16*15/100 {
		t.Errorf("%d bytes beyond the pairs are more than 15 %%", over)
	}
	ix.Close()
	column := facetest.MustFreeze(t, signed(keys), make([]uint32, n))
	if s := column.Stats(); s.Layout != pando.Apart || s.ValueBytes != 4*n || s.LeafBytes != 8*n || s.HeapBytes != 0 {
		t.Errorf("%+v", s)
	}
	column.Close()
	rows := facetest.MustFreeze(t, keys, make([]string, n))
	if s := rows.Stats(); s.Layout != pando.Apart || s.ValueBytes != 0 || s.HeapBytes != 8*(n+1) {
		t.Errorf("%+v", s)
	}
	rows.Close()
}
