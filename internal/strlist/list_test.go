package strlist

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

// order returns the order in which strings are sorted.
func rows(keys []string) []int {
	rows := make([]int, len(keys))
	for i := range rows {
		rows[i] = i
	}
	sort.SliceStable(rows, func(i, j int) bool { return keys[rows[i]] < keys[rows[j]] })
	return rows
}

func TestListAgainstSortedSlice(t *testing.T) {
	rng := seed.Rand(t)
	for n := range 200 {
		keys := randomStrings(n, rng)
		given := slices.Clone(keys)
		l := Build(keys, rows(keys))
		if !slices.Equal(keys, given) {
			t.Fatal("Build has changed its input")
		}
		slices.Sort(keys)
		if err := compare(l, keys, slices.Concat(awkward, keys, randomStrings(50, rng))); err != nil {
			t.Fatalf("%q: %v", keys, err)
		}
	}
}

func compare(l *List, keys, asked []string) error {
	if l.Len() != len(keys) {
		return fmt.Errorf("length %d, want %d", l.Len(), len(keys))
	}
	for i, want := range keys {
		if got := l.Key(i); got != want {
			return fmt.Errorf("key %d is %q, want %q", i, got, want)
		}
	}
	for _, k := range asked {
		rank := sort.Search(len(keys), func(i int) bool { return keys[i] >= k })
		end := sort.Search(len(keys), func(i int) bool { return keys[i] > k })
		if got, equal := l.Seek(k); got != rank || equal != (end > rank) {
			return fmt.Errorf("Seek(%q) = %d, %v; want %d, %v", k, got, equal, rank, end > rank)
		}
		if got := l.After(k); got != end {
			return fmt.Errorf("After(%q) = %d, want %d", k, got, end)
		}
	}
	return compareBatch(Tree{l}, keys, asked)
}

// compareBatch asks a tree for all keys at once.
func compareBatch(tree Tree, keys, asked []string) error {
	ranks, places := make([]int, len(asked)), make([]int, len(asked))
	tree.Rank(asked, ranks)
	tree.Find(asked, places)
	for i, k := range asked {
		rank := sort.SearchStrings(keys, k)
		place := -1
		if rank < len(keys) && keys[rank] == k {
			place = rank
		}
		if ranks[i] != rank || places[i] != place {
			return fmt.Errorf("%q has rank %d and is at %d, want %d, %d", k, ranks[i], places[i], rank, place)
		}
	}
	return nil
}

// A list takes exactly what Need says beforehand, so that a limit holds.
func TestNeedIsWhatAListTakes(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 2, 100, 3000} {
		keys := randomStrings(n, rng)
		l := Build(keys, rows(keys))
		if got := int64(len(l.data) + 8*len(l.offsets)); got != Need(keys) {
			t.Errorf("%d keys hold %d bytes, Need says %d", n, got, Need(keys))
		}
		if l.Bytes() < Need(keys) {
			t.Errorf("%d keys: Bytes %d is below Need %d", n, l.Bytes(), Need(keys))
		}
	}
}

// Nothing is kept of the strings a list is built from.
func TestListKeepsNothingOfItsInput(t *testing.T) {
	buf := []byte("onetwosix")
	var keys []string
	for i := range 3 {
		keys = append(keys, unsafe.String(&buf[3*i], 3))
	}
	l := Build(keys, rows(keys))
	clear(buf)
	clear(keys)
	if l.Key(0) != "one" || l.Key(1) != "six" || l.Key(2) != "two" {
		t.Errorf("keys %q, %q, %q", l.Key(0), l.Key(1), l.Key(2))
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	keys := randomStrings(1000, seed.Rand(t))
	l := Build(keys, rows(keys))
	n := testing.AllocsPerRun(100, func() {
		for _, k := range awkward {
			l.Seek(k)
			l.After(k)
		}
		l.Key(500)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
