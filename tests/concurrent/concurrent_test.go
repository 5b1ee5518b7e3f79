package concurrent_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// reader asks something again and again, and gives an error for a wrong
// answer.
type reader struct {
	name string
	ask  func(rng *rand.Rand) error
}

// readers ask an index of keys 0, 2, 4, … 2(n-1), whose values are vals.of of
// half their key.
func readers[V any](ix *pando.Frozen[uint64, V], n int, v facetest.Values[V]) []reader {
	wrong := func(what string, k uint64, got any) error { return fmt.Errorf("%s(%d) = %v", what, k, got) }
	get := func(k uint64) error {
		got, ok := ix.Get(k)
		if want := k%2 == 0; ok != want || want && !v.Same(got, v.Of(int(k/2))) {
			return wrong("Get", k, got)
		}
		return nil
	}
	return []reader{
		{"Get", func(rng *rand.Rand) error { return get(rng.Uint64N(uint64(2 * n))) }},
		{"Get last", func(*rand.Rand) error { return get(uint64(2*n - 2)) }},
		{"GetBatch", func(rng *rand.Rand) error { return readBatch(ix, n, v, rng) }},
		{"RankBatch", func(rng *rand.Rand) error {
			keys, ranks := make([]uint64, 100), make([]int, 100)
			for i := range keys {
				keys[i] = rng.Uint64N(uint64(2 * n))
			}
			ix.RankBatch(keys, ranks)
			for i, k := range keys {
				if ranks[i] != int(k+1)/2 {
					return wrong("RankBatch", k, ranks[i])
				}
			}
			return nil
		}},
		{"RangeBatch", func(rng *rand.Rand) error {
			lo := rng.Uint64N(uint64(2*n - 40))
			r := ix.RangeBatch([]uint64{lo, 0}, []uint64{lo + 39, 9}, 0)
			if len(r.Keys) != 25 || r.Keys[0] != (lo+1)/2*2 || !v.Same(r.Vals[24], v.Of(4)) {
				return wrong("RangeBatch", lo, r.Keys)
			}
			return nil
		}},
		{"At", func(rng *rand.Rand) error {
			i := rng.IntN(n)
			if k, got := ix.At(i); k != uint64(2*i) || !v.Same(got, v.Of(i)) {
				return wrong("At", uint64(i), got)
			}
			return nil
		}},
		{"All", func(*rand.Rand) error {
			i := 0
			for k, got := range ix.All() {
				if k != uint64(2*i) || !v.Same(got, v.Of(i)) {
					return wrong("All", k, got)
				}
				i++
			}
			return nil
		}},
		{"Floor", func(rng *rand.Rand) error {
			k := rng.Uint64N(uint64(2 * n))
			if got, val, ok := ix.Floor(k); !ok || got != k/2*2 || !v.Same(val, v.Of(int(k/2))) {
				return wrong("Floor", k, got)
			}
			return nil
		}},
	}
}

// readBatch asks a batch that is large enough to be shared out.
func readBatch[V any](ix *pando.Frozen[uint64, V], n int, v facetest.Values[V], rng *rand.Rand) error {
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = rng.Uint64N(uint64(2 * n))
	}
	vals, found := make([]V, len(keys)), make([]bool, len(keys))
	hits := ix.GetBatch(keys, vals, found)
	for i, k := range keys {
		if found[i] {
			hits--
		}
		if want := k%2 == 0; found[i] != want || want && !v.Same(vals[i], v.Of(int(k/2))) {
			return fmt.Errorf("GetBatch(%d) = %v, %v", k, vals[i], found[i])
		}
	}
	if hits != 0 {
		return fmt.Errorf("GetBatch counts %d hits too many", hits)
	}
	return nil
}

func evenKeys[V any](n int, v facetest.Values[V]) ([]uint64, []V) {
	keys, vals := make([]uint64, n), make([]V, n)
	for i := range keys {
		keys[i], vals[i] = uint64(2*i), v.Of(i)
	}
	return keys, vals
}

// Readers that are overtaken by Close get the right answer or a panic with a
// sentence, never nonsense and never a fault.
func TestCloseBesideReaders(t *testing.T) {
	for _, p := range simd.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			defer simd.Use(p)()
			t.Run("pairs", closedBesideReaders(facetest.Uint64Values, 1))
			t.Run("column", closedBesideReaders(facetest.Uint32Values, 1))
			t.Run("rows", closedBesideReaders(facetest.StringValues, 1))
			t.Run("blocked", closedBesideReaders(facetest.Uint64Values, 4, pando.Layout(pando.Blocked)))
			t.Run("compressed", closedBesideReaders(facetest.Uint64Values, 4, pando.Layout(pando.Compressed)))
			t.Run("radix", closedBesideReaders(facetest.Uint64Values, 4, pando.Layout(pando.Radix)))
		})
	}
}

// closedBesideReaders runs one round in so many.
func closedBesideReaders[V any](v facetest.Values[V], in int, opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		const n = 8 * 9 * 9 * 9
		keys, vals := evenKeys(n, v)
		rounds := 40 / in
		if !seed.Long() {
			rounds = 4
		}
		for round := range rounds {
			ix := facetest.MustFreeze(t, keys, vals, append(opts, pando.Workers(2))...)
			var wg sync.WaitGroup
			for _, r := range readers(ix, n, v) {
				seed := rng.Uint64()
				wg.Go(func() {
					if text := readUntilClosed(r, seed); text != "" {
						t.Errorf("round %d, %s: %s", round, r.name, text)
					}
				})
			}
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
			wg.Go(func() { ix.Close() })
			ix.Close()
			wg.Wait()
		}
	}
}

// readUntilClosed asks until a panic, and says what is wrong with it.
func readUntilClosed(r reader, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var err error
	text := facetest.PanicOf(func() {
		for err == nil {
			err = r.ask(rng)
		}
	})
	switch {
	case err != nil:
		return err.Error()
	case !facetest.ClosedText(text):
		return "panic: " + text
	}
	return ""
}

// A key in the last leaf is the hard case: if Close comes between two looks at
// the leaf, it is found, but behind all entries. With so many of them, that is
// where the memory of the index ends.
func TestCloseBesideGetOfTheLast(t *testing.T) {
	t.Run("pairs", closedBesideGet(facetest.Uint64Values))
	t.Run("column", closedBesideGet(facetest.Uint32Values))
	t.Run("rows", closedBesideGet(facetest.StringValues))
	t.Run("blocked", closedBesideGet(facetest.Uint64Values, pando.Layout(pando.Blocked)))
	t.Run("compressed", closedBesideGet(facetest.Uint32Values, pando.Layout(pando.Compressed)))
	t.Run("radix", closedBesideGet(facetest.Uint32Values, pando.Layout(pando.Radix)))
}

func closedBesideGet[V any](v facetest.Values[V], opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		const n = 1024
		keys, vals := evenKeys(n, v)
		rounds := 2000
		if len(opts) > 0 {
			rounds = 500
		}
		if !seed.Long() {
			rounds = 100
		}
		err := facetest.OnEachPath(func() error {
			for round := range rounds {
				ix := facetest.MustFreeze(t, keys, vals, append(opts, pando.Workers(1))...)
				if text := closeBeside(ix, 2*n-2); !facetest.ClosedText(text) {
					return fmt.Errorf("round %d: %s", round, text)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// closeBeside closes an index while another goroutine gets a key again and
// again, and gives what that one panics with.
func closeBeside[V any](ix *pando.Frozen[uint64, V], key uint64) string {
	var asked atomic.Int64
	text := make(chan string)
	go func() {
		debug.SetPanicOnFault(true) // so that a fault does not end the test
		text <- facetest.PanicOf(func() {
			for {
				ix.Get(key)
				asked.Add(1)
			}
		})
	}()
	for asked.Load() < 10 {
		runtime.Gosched()
	}
	ix.Close()
	return <-text
}

// The same for strings, whose search reads offsets and then what they point to.
func TestCloseBesideReadersOfStrings(t *testing.T) {
	for _, layout := range facetest.Layouts[string](facetest.Uint64Values) {
		t.Run(layout.String(), func(t *testing.T) {
			rng := seed.Rand(t)
			words, vals := make([]string, 3000), make([]uint64, 3000)
			for i := range words {
				words[i], vals[i] = facetest.AURL(rng, i), uint64(i)
			}
			for range 15 {
				ix := facetest.MustFreeze(t, words, vals, pando.Layout(layout), pando.Workers(2))
				var wg sync.WaitGroup
				for _, m := range facetest.EveryMethod(ix) {
					wg.Go(func() {
						text := facetest.PanicOf(func() {
							for {
								m.Do()
							}
						})
						if !facetest.ClosedText(text) {
							t.Errorf("%s: panic: %s", m.Name, text)
						}
					})
				}
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
				ix.Close()
				wg.Wait()
			}
		})
	}
}

// Any number of readers at once, on the fastest path.
func TestConcurrentReaders(t *testing.T) {
	t.Run("pairs", readConcurrently(facetest.Uint64Values))
	t.Run("column", readConcurrently(facetest.Uint32Values))
	t.Run("rows", readConcurrently(facetest.StringValues))
}

func readConcurrently[V any](v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		const n = 5000
		keys, vals := evenKeys(n, v)
		ix := facetest.MustFreeze(t, keys, vals, pando.Workers(3))
		defer ix.Close()
		var wg sync.WaitGroup
		for range 3 {
			for _, r := range readers(ix, n, v) {
				own := rand.New(rand.NewPCG(rng.Uint64(), 1))
				wg.Go(func() {
					for range 20 {
						if err := r.ask(own); err != nil {
							t.Errorf("%s: %v", r.name, err)
						}
					}
				})
			}
		}
		wg.Wait()
	}
}

// A range whose bounds were found before Close and is walked after it must not
// end as if it were empty: it yields all its entries, or panics.
func TestCloseBesideShortRanges(t *testing.T) {
	const n = 1 << 14
	keys, vals := make([]uint64, n), make([]uint64, n)
	words := make([]string, n)
	for i := range keys {
		keys[i], vals[i], words[i] = uint64(i), uint64(i), fmt.Sprintf("%08d", i)
	}
	rng := seed.Rand(t)
	for round := range seed.Times(40, 600) {
		numbers := facetest.MustFreeze(t, keys, vals, pando.Workers(1))
		strings := facetest.MustFreeze(t, words, vals, pando.Workers(1))
		var wg sync.WaitGroup
		for name, count := range map[string]func() int{
			"Range":            func() int { return counted(numbers.Range(1000, 1003)) },
			"Range of strings": func() int { return counted(strings.Range("00001000", "00001003")) },
			"Prefix":           func() int { return counted(strings.Prefix("0000100")) - 6 },
			"Count":            func() int { return numbers.Count(1000, 1003) },
			"RangeBatch":       func() int { return len(numbers.RangeBatch([]uint64{1000}, []uint64{1003}, 0).Keys) },
			"Range, backwards": func() int { return 4 + counted(numbers.Range(1003, 1000)) },
			"PrefixCount":      func() int { return strings.PrefixCount("0000100") - 6 },
		} {
			wg.Go(func() {
				seen := 4
				text := facetest.PanicOf(func() {
					for seen == 4 {
						seen = count()
					}
				})
				if seen != 4 || !facetest.ClosedText(text) {
					t.Errorf("round %d, %s: %d entries, want 4 or a panic: %q", round, name, seen, text)
				}
			})
		}
		time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
		numbers.Close()
		strings.Close()
		wg.Wait()
	}
}

// A tree that is closed while its entries are counted must not say that it has none.
func TestCloseBesideLen(t *testing.T) {
	keys := []uint64{1, 2, 3}
	for round := range seed.Times(50, 1000) {
		tree, err := pando.TreeOf(keys, keys, pando.Layout(pando.Radix), pando.Workers(1))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for name, count := range map[string]func() int{
			"Len":   tree.Len,
			"Stats": func() int { return tree.Stats().Len },
		} {
			wg.Go(func() {
				seen := len(keys)
				text := facetest.PanicOf(func() {
					for seen == len(keys) {
						seen = count()
					}
				})
				if seen != len(keys) || !facetest.ClosedText(text) {
					t.Errorf("round %d, %s: %d entries, want %d or a panic: %q", round, name, seen, len(keys), text)
				}
			})
		}
		runtime.Gosched()
		tree.Close()
		wg.Wait()
	}
}

// counted returns the number of entries of a sequence.
func counted[K, V any](s iter.Seq2[K, V]) (n int) {
	for range s {
		n++
	}
	return n
}
