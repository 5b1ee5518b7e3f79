package exec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// ordered is a layout that could not be simpler. It notes the buckets it is
// given.
type ordered[C order.Code] struct {
	codes []C // the value of an entry is its place plus 1

	mu      sync.Mutex
	buckets []int
}

func (l *ordered[C]) note(n int) {
	l.mu.Lock()
	l.buckets = append(l.buckets, n)
	l.mu.Unlock()
}

func (l *ordered[C]) rank(c C) int {
	return sort.Search(len(l.codes), func(i int) bool { return l.codes[i] >= c })
}

func (l *ordered[C]) find(c C) int {
	if i := l.rank(c); i < len(l.codes) && l.codes[i] == c {
		return i
	}
	return -1
}

func (l *ordered[C]) Rank(keys []C, ranks []int) {
	l.note(len(keys))
	for i, c := range keys {
		ranks[i] = l.rank(c)
	}
}

func (l *ordered[C]) Find(keys []C, ranks []int) {
	l.note(len(keys))
	for i, c := range keys {
		ranks[i] = l.find(c)
	}
}

func (l *ordered[C]) GetPairs(keys, vals []C, found []bool) (hits int) {
	l.note(len(keys))
	for i, c := range keys {
		at := l.find(c)
		vals[i] = C(at + 1)
		if at >= 0 {
			hits++
		}
		if found != nil {
			found[i] = at >= 0
		}
	}
	return hits
}

// places is a sink that keeps what it is given, and counts how often.
type places struct {
	at    []int
	times []int
}

func newPlaces(n int) *places { return &places{make([]int, n), make([]int, n)} }

func (p *places) Take(lo int, ranks []int) (hits int) {
	for i, r := range ranks {
		p.at[lo+i] = r
		p.times[lo+i]++
		if r >= 0 {
			hits++
		}
	}
	return hits
}

// batchSizes are those around the borders between one bucket and more, one
// worker and more.
func batchSizes() []int {
	out := []int{0, 1, 2, 1000}
	for _, border := range []int{minBucket, minShared, maxBucket} {
		out = append(out, border-1, border, border+1)
	}
	return append(out, 2*maxBucket, 4*maxBucket+1)
}

func TestAnswersOnAnyNumberOfWorkers(t *testing.T) {
	t.Run("uint64", func(t *testing.T) { answers[uint64, uint64](t, 0, 1, math.MaxUint64, math.MaxUint64-1) })
	t.Run("int64", func(t *testing.T) { answers[int64, uint64](t, math.MinInt64, -1, 0, math.MaxInt64) })
	t.Run("float64", func(t *testing.T) {
		answers[float64, uint64](t, math.NaN(), math.Inf(-1), math.Copysign(0, -1), 0, math.Inf(1))
	})
	t.Run("uint32", func(t *testing.T) { answers[uint32, uint32](t, 0, 1, math.MaxUint32, math.MaxUint32-1) })
	t.Run("uint8", func(t *testing.T) { answers[uint8, uint32](t, 0, 1, 254, 255) })
	t.Run("int16", func(t *testing.T) { answers[int16, uint32](t, math.MinInt16, -1, 0, math.MaxInt16) })
	t.Run("float32", func(t *testing.T) { answers[float32, uint32](t, float32(math.NaN()), 0, float32(math.Inf(1))) })
}

// answers asks batches of every size, for keys among which are the domain's ends.
func answers[K order.Key, C order.Code](t *testing.T, ends ...K) {
	rng := seed.Rand(t)
	codec := codec[K, C]{}
	random := func() K {
		if rng.IntN(4) == 0 {
			return ends[rng.IntN(len(ends))]
		}
		return codec.Decode(C(rng.IntN(2000)))
	}
	held := make([]K, 1000)
	for i := range held {
		held[i] = random()
	}
	slices.SortFunc(held, cmp.Compare[K])
	layout := &ordered[C]{codes: codec.EncodeSlice(make([]C, len(held)), held)}
	for _, workers := range []int{1, 2, 5} {
		e := NewCPU(layout, len(held), workers)
		for _, n := range batchSizes() {
			keys := make([]K, n)
			for i := range keys {
				keys[i] = random()
			}
			if err := askAll(e, held, keys); err != nil {
				t.Fatalf("%d workers, batch of %d: %v", workers, n, err)
			}
		}
	}
}

// askAll asks a batch every question and compares with a binary search by
// cmp.Compare.
func askAll[K order.Key, C order.Code](e *CPU[C], held, keys []K) error {
	n := len(keys)
	given := slices.Clone(keys)
	ranks, after, vals, found := make([]int, n), make([]int, n), make([]C, n), make([]bool, n)
	sink := newPlaces(n)
	e.Rank(order.KeysOf(keys), ranks)
	e.RankAfter(order.KeysOf(keys), after)
	hits := e.FindEach(order.KeysOf(keys), sink)
	if h := e.GetPairs(order.KeysOf(keys), vals, nil); h != hits {
		return fmt.Errorf("GetPairs has %d hits, FindEach %d", h, hits)
	}
	clear(vals)
	if h := e.GetPairs(order.KeysOf(keys), vals, found); h != hits {
		return fmt.Errorf("GetPairs with found has %d hits, FindEach %d", h, hits)
	}
	for i, k := range keys {
		if cmp.Compare(k, given[i]) != 0 {
			return fmt.Errorf("key %d was %v and is %v", i, given[i], k)
		}
		lo := sort.Search(len(held), func(j int) bool { return cmp.Compare(held[j], k) >= 0 })
		hi := sort.Search(len(held), func(j int) bool { return cmp.Compare(held[j], k) > 0 })
		at := -1
		if hi > lo {
			at = lo
			hits--
		}
		if ranks[i] != lo || after[i] != hi {
			return fmt.Errorf("key %v: rank %d, after %d; want %d, %d", k, ranks[i], after[i], lo, hi)
		}
		if sink.at[i] != at || sink.times[i] != 1 {
			return fmt.Errorf("key %v found at %d, told %d times; want %d, once", k, sink.at[i], sink.times[i], at)
		}
		if vals[i] != C(at+1) || found[i] != (at >= 0) {
			return fmt.Errorf("key %v has value %d, %v; want %d, %v", k, vals[i], found[i], at+1, at >= 0)
		}
	}
	if hits != 0 {
		return fmt.Errorf("%d hits too many counted", hits)
	}
	return nil
}

// Buckets cover a batch, none is larger than its scratch space, and a small
// batch is one call on the caller's goroutine.
func TestBuckets(t *testing.T) {
	for _, workers := range []int{1, 2, 5, 64} {
		for _, n := range batchSizes() {
			layout := &ordered[uint64]{}
			e := NewCPU(layout, 0, workers)
			e.Rank(order.KeysOf(make([]uint64, n)), make([]int, n))
			total := 0
			for _, b := range layout.buckets {
				total += b
				if b > maxBucket || b == 0 {
					t.Errorf("%d workers, batch of %d: a bucket of %d", workers, n, b)
				}
			}
			if total != n {
				t.Errorf("%d workers, batch of %d: buckets of %d in all", workers, n, total)
			}
			if few := len(layout.buckets); n > 0 && n < minShared && few != 1 {
				t.Errorf("%d workers, batch of %d: %d buckets, want 1", workers, n, few)
			}
			if many := len(layout.buckets); n >= 2*minShared && many < min(workers, n/minBucket) {
				t.Errorf("%d workers, batch of %d: %d buckets leave some without work", workers, n, many)
			}
		}
	}
}

// What is below the key after the greatest is everything.
func TestRankAfterTheGreatest(t *testing.T) {
	for _, held := range [][]uint32{{}, {0}, {math.MaxUint32}, {5, math.MaxUint32, math.MaxUint32}} {
		e := NewCPU(&ordered[uint32]{codes: held}, len(held), 1)
		keys := []uint32{math.MaxUint32, 0, math.MaxUint32 - 1, math.MaxUint32}
		ranks := make([]int, len(keys))
		e.RankAfter(order.KeysOf(keys), ranks)
		if ranks[0] != len(held) || ranks[3] != len(held) {
			t.Errorf("%d: after the greatest are %d and %d, want %d", held, ranks[0], ranks[3], len(held))
		}
		if !slices.Equal(keys, []uint32{math.MaxUint32, 0, math.MaxUint32 - 1, math.MaxUint32}) {
			t.Errorf("the caller's keys have become %d", keys)
		}
	}
}

// burst is a sink that fails on one bucket.
type burst struct{}

func (burst) Take(lo int, _ []int) int {
	if lo > 0 {
		panic("burst")
	}
	return 0
}

// A panic comes out in the caller's goroutine, and the next batch is none the
// worse for it.
func TestPanicReachesTheCaller(t *testing.T) {
	held := []uint64{1, 2, 3}
	e := NewCPU(&ordered[uint64]{codes: held}, len(held), 3)
	keys := make([]uint64, 20_000)
	for range 20 {
		func() {
			defer func() {
				if v := recover(); v != "burst" {
					t.Errorf("recovered %v", v)
				}
			}()
			e.FindEach(order.KeysOf(keys), burst{})
		}()
		if err := askAll(e, held, keys); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	held := []int64{-5, 0, 0, 7, 9}
	codec := codec[int64, uint64]{}
	layout := &ordered[uint64]{codes: codec.EncodeSlice(make([]uint64, len(held)), held)}
	e := NewCPU(layout, len(held), 2)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			keys := make([]int64, 6000+g)
			for i := range keys {
				keys[i] = int64((i*7+g)%20) - 6
			}
			for range 5 {
				if err := askAll(e, held, keys); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
