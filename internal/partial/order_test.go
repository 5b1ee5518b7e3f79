package partial

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
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

func TestOrder(t *testing.T) {
	for name, make1 := range kinds {
		rng := seed.Rand(t)
		for _, n := range []int{0, 1, 100, fewKeys - 1, fewKeys, 3*fewKeys + 7} {
			if n > 100 && (name == "past 64 KiB" || name == "past 4 KiB") {
				n /= 40
			}
			keys := make([]string, n)
			for i := range keys {
				keys[i] = make1(rng, i)
			}
			rng.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			want := make([]int, n)
			for i := range want {
				want[i] = i
			}
			slices.SortStableFunc(want, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
			got, err := Order(keys, 1+rng.IntN(3))
			if err != nil {
				t.Fatal(err)
			}
			if got == nil && slices.IsSorted(want) {
				continue
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, %d strings: not in order", name, n)
			}
		}
	}
}

// Whatever strings are like, sorting them takes no more memory than Need says,
// and leaves nothing but the order behind.
func TestOrderTakesWhatItNeeds(t *testing.T) {
	for name, make1 := range kinds {
		if name == "past 64 KiB" || name == "past 4 KiB" {
			continue // compared, not sorted by partial keys
		}
		rng := seed.Rand(t)
		keys := make([]string, 9*fewKeys)
		for i := range keys {
			keys[i] = make1(rng, i)
		}
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		if Sorted(keys, 1) {
			continue
		}
		workers := 1 + rng.IntN(3)
		most, _, err := Need(len(keys), workers)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		inUse := arena.InUse()
		arena.MostInUse()
		runtime.ReadMemStats(&before)
		if _, err := Order(keys, workers); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		heap := int64(after.TotalAlloc-before.TotalAlloc) - 8*int64(len(keys)) // the order, when most of the rest is given back
		off := arena.MostInUse() - inUse
		garbage := 2*order.SortNeed(len(keys), 12, workers) + most/100 + 16<<10 // of later rounds
		if off > most || heap+off > most+garbage {
			t.Errorf("%s: sorting %d strings took %d bytes on the heap and %d off it, not %d", name, len(keys), heap, off, most)
		}
		if now := arena.InUse(); now != inUse {
			t.Errorf("%s: %d bytes are left", name, now-inUse)
		}
	}
}
