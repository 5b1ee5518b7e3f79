package pando_test

import (
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// descending returns keys that must be sorted, and their like that need not.
func descending(n int) (unsorted, sorted []uint64) {
	sorted = make([]uint64, n)
	for i := range sorted {
		sorted[i] = uint64(i)
	}
	unsorted = slices.Clone(sorted)
	slices.Reverse(unsorted)
	return unsorted, sorted
}

// signed returns the same keys as another type.
func signed(keys []uint64) []int64 {
	out := make([]int64, len(keys))
	for i, k := range keys {
		out[i] = int64(k)
	}
	return out
}

func TestMemoryLimitTooSmall(t *testing.T) {
	unsorted, sorted := descending(100_000)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = strings.Repeat("x", i)
	}
	says := []string{"needs", "the limit is 100000"}
	small := pando.MemoryLimit(100_000)
	checkBad(t, []bad{
		{"sorted", failing(sorted, sorted, small), pando.ErrMemoryLimit, says},
		{"unsorted", failing(unsorted, sorted, small), pando.ErrMemoryLimit, append(says, "sorted input needs less")},
		{"column", failing(signed(unsorted), make([]uint32, 100_000), small), pando.ErrMemoryLimit, says},
		{"rows", failing(unsorted, make([]string, 100_000), small), pando.ErrMemoryLimit, says},
		{"keys only", failing[uint64, struct{}](unsorted, nil, small), pando.ErrMemoryLimit, says},
		{"strings", failing(texts, make([]uint64, 1000), small), pando.ErrMemoryLimit, says},
		{"blocked", failing(sorted, sorted, small, pando.Layout(pando.Blocked)), pando.ErrMemoryLimit, says},
		{"compressed", failing(sorted, sorted, small, pando.Layout(pando.Compressed)), pando.ErrMemoryLimit, says},
		{"compressed, no room to sort", failing(unsorted, sorted, small, pando.Layout(pando.Compressed)), pando.ErrMemoryLimit, append(says, "sorted input needs less")},
		{"compressed strings", failing(texts, make([]uint64, 1000), small, pando.Layout(pando.Compressed)), pando.ErrMemoryLimit, says},
		{"one byte", failing([]int8{1}, []uint32{1}, pando.MemoryLimit(1)), pando.ErrMemoryLimit, []string{"the limit is 1"}},
	})
}

// The least limit that a build accepts is what Stats name afterwards, and
// below it nothing is taken.
func TestMemoryLimitIsExact(t *testing.T) {
	const n = 30_000 // so few are sorted in memory that is counted to the byte
	unsorted, sorted := descending(n)
	for _, layout := range facetest.Layouts[uint64](facetest.Uint64Values) {
		in := pando.Layout(layout)
		ix := facetest.MustFreeze(t, sorted, sorted, in)
		need := ix.Stats().TotalBytes
		ix.Close()
		room := need + 32*n + 8192 // keys and values, twice
		leaksNothing(t, func() {
			if err := failing(sorted, sorted, in, pando.MemoryLimit(need))(); err != nil {
				t.Errorf("%v, limit of all that is needed: %v", layout, err)
			}
			if err := failing(sorted, sorted, in, pando.MemoryLimit(need-1))(); !errors.Is(err, pando.ErrMemoryLimit) {
				t.Errorf("%v, one byte less: %v", layout, err)
			}
			if err := failing(unsorted, sorted, in, pando.MemoryLimit(room-16*1024))(); !errors.Is(err, pando.ErrMemoryLimit) {
				t.Errorf("%v, no room to sort: %v", layout, err)
			}
			if err := failing(unsorted, sorted, in, pando.MemoryLimit(room))(); err != nil {
				t.Errorf("%v, room to sort: %v", layout, err)
			}
		})
	}
	words := []string{"four", "three"}
	for limit, ok := range map[int64]bool{3*8 + 9: true, 3*8 + 8: false} {
		if err := failing(words, words, pando.MemoryLimit(limit), pando.Layout(pando.Apart))(); (err == nil) != ok {
			t.Errorf("strings, limit of %d: %v", limit, err)
		}
	}
	slices.Reverse(words) // their order takes two words
	for limit, ok := range map[int64]bool{5*8 + 9: true, 5*8 + 8: false} {
		if err := failing(words, words, pando.MemoryLimit(limit), pando.Layout(pando.Apart))(); (err == nil) != ok {
			t.Errorf("strings to be sorted, limit of %d: %v", limit, err)
		}
	}
}

// limited is builds under limits, as long as there is an index the function
// that closes it.
type limited struct {
	name  string
	late  bool // the size shows when keys are sorted
	build func(limit int64) (close func() error, err error)
}

// limitedKeys is the number of keys of each build.
const limitedKeys = 60_000

// limitedTo returns builds in a layout, of uint64 values.
func limitedTo[K pando.Key](name string, keys []K, late bool, layout pando.LayoutKind) limited {
	_, vals := descending(len(keys))
	return limited{name + ", " + layout.String(), late, func(limit int64) (func() error, error) {
		ix, err := pando.Freeze(keys, vals, pando.MemoryLimit(limit), pando.Layout(layout), pando.Workers(2))
		if err != nil {
			return nil, err
		}
		return ix.Close, nil
	}}
}

// limitedBuilds lists builds of keys in no order, and of keys that need not be
// sorted.
func limitedBuilds() (builds []limited) {
	unsorted, sorted := descending(limitedKeys)
	short, urls := make([]string, limitedKeys), make([]string, limitedKeys)
	for i := range short {
		short[i] = strconv.Itoa(i * 7919 % limitedKeys)
		urls[i] = "https://www.example/" + strings.Repeat("a", i%40) + "/" + short[i]
	}
	ordered := slices.Sorted(slices.Values(urls))
	for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix} {
		late := l == pando.AutoLayout || l == pando.Compressed || l == pando.Radix
		builds = append(builds, limitedTo("numbers", unsorted, late, l), limitedTo("sorted numbers", sorted, false, l))
	}
	for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.Apart, pando.Radix} {
		late := l != pando.Apart
		builds = append(builds, limitedTo("short strings", short, late, l), limitedTo("URLs", urls, late, l), limitedTo("sorted URLs", ordered, false, l))
	}
	return builds
}

// A build under a limit takes no more than that, sorting included, or is
// refused before it takes anything; where its size shows only when its keys are
// sorted, within the limit. Tables of a few bytes a key are not counted.
func TestMemoryLimitIsKept(t *testing.T) {
	const tables = 4*limitedKeys + 64<<10
	for _, b := range limitedBuilds() {
		accepted, early := 0, 0
		for limit := int64(100_000); accepted < 3; limit += limit / int64(seed.Size(6, 12)) {
			var before, after runtime.MemStats
			inUse := arena.InUse()
			arena.MostInUse()
			runtime.ReadMemStats(&before)
			closeIt, err := b.build(limit)
			runtime.ReadMemStats(&after)
			heap, most, holds := int64(after.TotalAlloc-before.TotalAlloc), arena.MostInUse()-inUse, arena.InUse()-inUse
			switch {
			case err == nil:
				accepted++
				closeIt()
			case !errors.Is(err, pando.ErrMemoryLimit):
				t.Fatalf("%s, limit %d: %v", b.name, limit, err)
			case heap <= tables && most == 0:
				early++
			case !b.late:
				t.Errorf("%s, limit %d: %d bytes on the heap and %d off it are taken before it is refused", b.name, limit, heap, most)
			}
			if most > limit+tables || heap+holds > limit+tables {
				t.Errorf("%s, limit %d: %d bytes on the heap, %d off it, up to %d before: %v", b.name, limit, heap, holds, most, err)
			}
		}
		if early == 0 {
			t.Errorf("%s: never refused before anything is taken", b.name)
		}
	}
}

// What a build takes to sort goes back as soon as it is done.
func TestScratchMemoryGoesBack(t *testing.T) {
	unsorted, sorted := descending(50_000)
	leaksNothing(t, func() {
		for _, layout := range facetest.Layouts[uint64](facetest.Uint64Values) {
			ix := facetest.MustFreeze(t, unsorted, sorted, pando.Layout(layout))
			if got, want := arena.InUse(), ix.Stats().TotalBytes; got != want {
				t.Errorf("%v: %d bytes in use after a build, the index has %d", layout, got, want)
			}
			ix.Close()
		}
	})
}

func TestManyBuildsLeaveNothing(t *testing.T) {
	unsorted, sorted := descending(2000)
	leaksNothing(t, func() {
		for range 300 {
			ix := facetest.MustFreeze(t, unsorted, sorted)
			ix.Get(5)
			ix.Close()
		}
	})
}

// An index that nobody holds any more is freed without Close, also after
// batches, whose scratch space refers to it.
func TestForgottenIndexIsFreed(t *testing.T) {
	facetest.NoneInUse(t)
	unsorted, sorted := descending(20_000)
	func() {
		pairs := facetest.MustFreeze(t, unsorted, sorted, pando.Workers(2))
		rows := facetest.MustFreeze(t, unsorted, make([]*int, len(sorted)), pando.Workers(2))
		pairs.GetBatch(sorted, make([]uint64, len(sorted)), nil)
		rows.GetBatch(sorted, make([]*int, len(sorted)), nil)
		if arena.InUse() == 0 {
			t.Error("nothing is in use")
		}
	}()
	facetest.NoneInUse(t)
}

// One collection is enough for that, whatever was asked of the index: nothing
// that outlives it, as what is in a sync.Pool does, refers to it.
func TestForgottenIndexIsFreedByOneCollection(t *testing.T) {
	t.Run("pairs", freedByOne(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("column", freedByOne(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Apart)))
	t.Run("rows", freedByOne(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("strings", freedByOne(facetest.Strings[string](), facetest.Uint64Values))
	t.Run("blocked", freedByOne(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Blocked)))
	t.Run("compressed", freedByOne(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Compressed)))
}

func freedByOne[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		facetest.NoneInUse(t)
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		func() {
			keys, vals := facetest.ManyEntries(20_000, d, v, seed.Rand(t))
			ix := facetest.MustFreeze(t, keys, vals, append(opts, pando.Workers(2))...)
			for _, m := range facetest.EveryMethod(ix) {
				m.Do()
			}
			ix.GetBatch(keys, vals, make([]bool, len(keys)))
			ix.RankBatch(keys, make([]int, len(keys)))
			ix.Batcher(0, 0).Get(keys[0])
			if arena.InUse() == 0 {
				t.Error("nothing is in use")
			}
		}()
		runtime.GC()
		for range 4000 { // memory goes back a little later, and others may keep the machine busy
			if arena.InUse() == 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%d bytes are still in use", arena.InUse())
	}
}

// Values with pointers are seen by the garbage collector, and kept.
func TestValuesOnTheHeapStayAlive(t *testing.T) {
	keys := []uint64{9, 3, 5}
	vals := make([]*[]int, len(keys))
	for i := range vals {
		vals[i] = &[]int{i}
	}
	ix := facetest.MustFreeze(t, keys, vals)
	defer ix.Close()
	clear(vals)
	runtime.GC()
	runtime.GC()
	for i, k := range keys {
		if v, ok := ix.Get(k); !ok || (*v)[0] != i {
			t.Errorf("value of %d is gone", k)
		}
	}
}
