package words

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/partial"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// kinds are kinds of strings that partial keys have a hard time with, or an
// easy one.
var kinds = map[string]func(rng *rand.Rand, i int) string{
	"last byte":  func(_ *rand.Rand, i int) string { return strings.Repeat("same", 9) + string(rune(i)) },
	"prefixes":   func(_ *rand.Rand, i int) string { return strings.Repeat("a", i%1500) },
	"nul":        func(_ *rand.Rand, i int) string { return strings.Repeat("\x00", i%700) },
	"equal":      func(*rand.Rand, int) string { return "always the same" },
	"two":        func(rng *rand.Rand, _ int) string { return []string{"one", "two"}[rng.IntN(2)] },
	"random":     func(rng *rand.Rand, _ int) string { return randomBytes(rng, rng.IntN(20), 256) },
	"short":      func(rng *rand.Rand, _ int) string { return randomBytes(rng, rng.IntN(4), 256) },
	"1 value":    func(rng *rand.Rand, _ int) string { return randomBytes(rng, rng.IntN(40), 1) },
	"2 values":   func(rng *rand.Rand, _ int) string { return randomBytes(rng, 16, 2) },
	"4 values":   func(rng *rand.Rand, _ int) string { return randomBytes(rng, 16, 4) },
	"past 4 KiB": func(rng *rand.Rand, i int) string { return long + randomBytes(rng, 8, 256) },
	"far apart": func(rng *rand.Rand, i int) string {
		return randomBytes(rng, 1, 2) + long[:100] + randomBytes(rng, 1, 3) + long[:200] + randomBytes(rng, 4, 9)
	},
	"past 64 KiB": func(rng *rand.Rand, i int) string { return longer + randomBytes(rng, 2, 4) },
	"urls": func(rng *rand.Rand, i int) string {
		return fmt.Sprintf("https://www.%s.example/%s/%d?q=%d", hosts[rng.IntN(len(hosts))], hosts[rng.IntN(4)], rng.IntN(1000), rng.IntN(50))
	},
	"uuids": func(rng *rand.Rand, i int) string {
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<12), rng.IntN(1<<14)|1<<15, rng.Uint64()>>16)
	},
	"phones": func(rng *rand.Rand, i int) string {
		return fmt.Sprintf("%d-%d-%d-%d", 10+rng.IntN(25), 100+rng.IntN(900), 100+rng.IntN(900), 1000+rng.IntN(9000))
	},
}

var (
	long   = strings.Repeat("0123456789abcdef", 257)
	longer = strings.Repeat("x", 1<<16+10)
	hosts  = strings.Fields("a shop news newspaper newspapers video images cdn static archive blog api")
)

func randomBytes(rng *rand.Rand, n, values int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + rng.IntN(values))
	}
	return string(b)
}

func eachKind(t *testing.T, check func(t *testing.T, rng *rand.Rand, keys []string)) {
	for name, make1 := range kinds {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			for _, n := range []int{0, 1, 2, 15, 16, 17, 255, 256, 257, 511, 3000, 12000} {
				if n > 600 && name == "past 64 KiB" || n > 3000 && name == "past 4 KiB" {
					continue
				}
				if !seed.Long() && (n > 3000 || rng.IntN(3) > 0) {
					continue
				}
				keys := make([]string, n)
				for i := range keys {
					keys[i] = make1(rng, i)
				}
				slices.Sort(keys)
				check(t, rng, keys)
			}
		})
	}
}

// strange returns strings that are near those of a list, or far from them.
func strange(rng *rand.Rand, keys []string, n int) (out []string) {
	out = []string{"", "\x00", "\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("\xff", 300), longer, "a"}
	for len(keys) > 0 && len(out) < n {
		k := keys[rng.IntN(len(keys))]
		b := []byte(k)
		switch rng.IntN(6) {
		case 0:
			b = append(b, byte(rng.Uint32()))
		case 1:
			b = b[:rng.IntN(len(b)+1)]
		case 2:
			if len(b) > 0 {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
		case 3:
			if len(b) > 0 {
				b[len(b)-1]++
			}
		case 4:
			if len(b) > 0 {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		}
		out = append(out, string(b))
	}
	return out
}

func compare(x *Tree, keys, asked []string) error {
	ranks, places := make([]int, len(asked)), make([]int, len(asked))
	x.Rank(asked, ranks)
	x.Find(asked, places)
	for i, k := range asked {
		rank := sort.SearchStrings(keys, k)
		equal := rank < len(keys) && keys[rank] == k
		place := -1
		if equal {
			place = rank
		}
		if ranks[i] != rank || places[i] != place {
			return fmt.Errorf("%.80q: rank %d, place %d, want %d and %d", k, ranks[i], places[i], rank, place)
		}
		if i%5 > 0 {
			continue
		}
		if r, e := x.Seek(k); r != rank || e != equal {
			return fmt.Errorf("Seek(%.80q) = %d, %v, want %d, %v", k, r, e, rank, equal)
		}
		if r, want := x.After(k), sort.Search(len(keys), func(i int) bool { return keys[i] > k }); r != want {
			return fmt.Errorf("After(%.80q) = %d, want %d", k, r, want)
		}
		lo, hi := prefix(x, k)
		end := rank + sort.Search(len(keys)-rank, func(i int) bool { return !strings.HasPrefix(keys[rank+i], k) })
		if lo != rank || hi != end {
			return fmt.Errorf("prefix(%.80q) = %d, %d, want %d, %d", k, lo, hi, rank, end)
		}
	}
	return nil
}

// prefix returns the strings [lo, hi) that begin with p, by two searches, as an
// index does it.
func prefix(x *Tree, p string) (lo, hi int) {
	lo, _ = x.Seek(p)
	hi = x.Len()
	if next, ok := order.AfterPrefix(p); ok {
		hi, _ = x.Seek(next)
	}
	return lo, hi
}

func TestAgainstSortedSlice(t *testing.T) {
	eachKind(t, func(t *testing.T, rng *rand.Rand, keys []string) {
		x, err := Build(keys, nil, Config{Workers: 1 + rng.IntN(3), Granule: []int{0, 0, 1, 4, 8, 32}[rng.IntN(6)]})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		for i, k := range keys {
			if x.Key(i) != k {
				t.Fatalf("string %d is %.80q, want %.80q", i, x.Key(i), k)
			}
		}
		for _, path := range simd.Paths() {
			undo := simd.Use(path)
			err := compare(x, keys, keys)
			if err == nil {
				err = compare(x, keys, strange(rng, keys, 1000))
			}
			undo()
			if err != nil {
				t.Fatalf("%d strings, %v: %v", len(keys), path, err)
			}
		}
	})
}

func TestInAnyOrder(t *testing.T) {
	rng := seed.Rand(t)
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = kinds["urls"](rng, i)
	}
	sorted := slices.Sorted(slices.Values(keys))
	if _, err := Build(keys, nil, Config{}); err != layout.ErrUnsorted {
		t.Errorf("unsorted strings: %v", err)
	}
	order, err := partial.Order(keys, 2)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Build(keys, order, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(x, sorted, keys); err != nil {
		t.Error(err)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	x.Release()
	for _, k := range keys { // must not fault
		x.Seek(k)
	}
}

// Strings that are too long for a page together are refused before anything is
// taken: 64 of 70 MiB, which share their bytes here.
func TestStringsTooLongTakeNothing(t *testing.T) {
	shared := strings.Repeat("x", 70<<20)
	keys := make([]string, pageEntries)
	for i := range keys {
		keys[i] = shared
	}
	for _, more := range []int{0, 4 * pageEntries} { // the sum alone tells, or one page does
		all := append(make([]string, more), keys...)
		arena.MostInUse()
		for _, limit := range []int64{0, 1 << 40} {
			if _, err := Build(all, nil, Config{Limit: limit}); !errors.Is(err, layout.ErrTooLong) {
				t.Errorf("%d strings: %v", len(all), err)
			}
		}
		if most := arena.MostInUse(); most != arena.InUse() {
			t.Errorf("%d strings: %d bytes were taken", len(all), most)
		}
	}
	if _, err := Need(keys, Config{}); !errors.Is(err, layout.ErrTooLong) {
		t.Errorf("Need: %v", err)
	}
}
