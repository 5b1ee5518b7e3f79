package text

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// awkward are strings at which a comparison can go wrong: nothing, one the
// prefix of another, and the bytes at both ends, which are no letters and no
// valid UTF-8.
var awkward = []string{
	"", "\x00", "\x00\x00", "\x00\xff", "a", "a\x00", "aa", "ab", "b", "\x7f", "\x80",
	"\xfe\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff", strings.Repeat("a", 300),
}

func randomStrings(n int, rng *rand.Rand) []string {
	out := make([]string, n)
	for i := range out {
		if rng.IntN(3) == 0 {
			out[i] = awkward[rng.IntN(len(awkward))]
			continue
		}
		b := make([]byte, rng.IntN(6))
		for j := range b {
			b[j] = "\x00ab\x80\xff"[rng.IntN(5)]
		}
		out[i] = string(b)
	}
	return out
}

// order gives the order in which strings are sorted.
func order(keys []string) []int {
	rows := make([]int, len(keys))
	for i := range rows {
		rows[i] = i
	}
	sort.SliceStable(rows, func(i, j int) bool { return keys[rows[i]] < keys[rows[j]] })
	return rows
}

func TestBlockAgainstSortedSlice(t *testing.T) {
	rng := seed.Rand(t)
	for n := range 200 {
		keys := randomStrings(n, rng)
		given := slices.Clone(keys)
		b := Build(keys, order(keys))
		if !slices.Equal(keys, given) {
			t.Fatal("Build has changed its input")
		}
		slices.Sort(keys)
		if err := compare(b, keys, slices.Concat(awkward, keys, randomStrings(50, rng))); err != nil {
			t.Fatalf("%q: %v", keys, err)
		}
	}
}

func compare(b *Block, keys, asked []string) error {
	if b.Len() != len(keys) {
		return fmt.Errorf("length %d, want %d", b.Len(), len(keys))
	}
	for i, want := range keys {
		if got := b.Key(i); got != want {
			return fmt.Errorf("key %d is %q, want %q", i, got, want)
		}
	}
	for _, k := range asked {
		rank := sort.Search(len(keys), func(i int) bool { return keys[i] >= k })
		end := sort.Search(len(keys), func(i int) bool { return keys[i] > k })
		if got, equal := b.Seek(k); got != rank || equal != (end > rank) {
			return fmt.Errorf("Seek(%q) = %d, %v; want %d, %v", k, got, equal, rank, end > rank)
		}
		if got := b.After(k); got != end {
			return fmt.Errorf("After(%q) = %d, want %d", k, got, end)
		}
	}
	return nil
}

// A block takes exactly what Need says beforehand, so that a limit holds.
func TestNeedIsWhatABlockTakes(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 2, 100, 3000} {
		keys := randomStrings(n, rng)
		b := Build(keys, order(keys))
		if got := int64(len(b.data) + 8*len(b.offsets)); got != Need(keys) {
			t.Errorf("%d keys hold %d bytes, Need says %d", n, got, Need(keys))
		}
		if b.Bytes() < Need(keys) {
			t.Errorf("%d keys: Bytes %d is below Need %d", n, b.Bytes(), Need(keys))
		}
	}
}

// Nothing is kept of the strings a block is built from.
func TestBlockKeepsNothingOfItsInput(t *testing.T) {
	buf := []byte("onetwosix")
	var keys []string
	for i := range 3 {
		keys = append(keys, unsafe.String(&buf[3*i], 3))
	}
	b := Build(keys, order(keys))
	clear(buf)
	clear(keys)
	if b.Key(0) != "one" || b.Key(1) != "six" || b.Key(2) != "two" {
		t.Errorf("keys %q, %q, %q", b.Key(0), b.Key(1), b.Key(2))
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	keys := randomStrings(1000, seed.Rand(t))
	b := Build(keys, order(keys))
	n := testing.AllocsPerRun(100, func() {
		for _, k := range awkward {
			b.Seek(k)
			b.After(k)
		}
		b.Key(500)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
