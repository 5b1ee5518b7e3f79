package shortcut

import (
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// A line of shortcuts finds the link of each of its tags, and none for others, however
// close.
func TestShortLine(t *testing.T) {
	rng := seed.Rand(t)
	for range 20000 {
		var x Line
		for i := range x.tags { // no tag is there twice
			x.tags[i] = uint16(rng.Uint32()) | 1
			if i > 0 && rng.IntN(2) == 0 {
				x.tags[i] = x.tags[0] ^ 1<<(1+rng.IntN(15))
			}
			for slices.Contains(x.tags[:i], x.tags[i]) {
				x.tags[i] += 2
			}
			x.links[i] = uint32(100 + i)
		}
		tag := x.tags[rng.IntN(lineTops)]
		if rng.IntN(2) == 0 {
			tag ^= 1 << (1 + rng.IntN(15))
		}
		want := uint32(0)
		if i := slices.Index(x.tags[:], tag); i >= 0 {
			want = x.links[i]
		}
		if got := x.Get(tag); got != want {
			t.Fatalf("tag %#x of %#x has link %d, not %d", tag, x.tags, got, want)
		}
	}
	if l := new(Line).Get(1); l != 0 {
		t.Errorf("an empty line has link %d", l)
	}
}

// Where a table is called exact, no two beginnings of keys have the same line and tag.
func TestExactShortcuts(t *testing.T) {
	const odd = 0x9e3779b97f4a7c15
	for bytes := 1; bytes < len(leastGap); bytes++ {
		least := uint64(1<<64 - 1)
		for d := uint64(1); d < 1<<(8*bytes); d++ {
			least = min(least, d*odd, -(d * odd))
		}
		if least != leastGap[bytes] {
			t.Errorf("%d bytes: hashes differ by %d at least, not by %d", bytes, least, leastGap[bytes])
		}
	}
	exact := 0
	for _, lines := range []int{1, 2, 3, 5, 17, 1000, 9363} {
		s := &Table{Depth: 2, Lines: make([]Line, lines)}
		if !s.IsExact() {
			continue
		}
		exact++
		seen := map[[2]int]bool{}
		for i := range 1 << 16 {
			line, tag := s.spread(s.Hash(string([]byte{byte(i >> 8), byte(i)})))
			if at := [2]int{line, int(tag)}; seen[at] {
				t.Fatalf("%d lines: %x has the place of another", lines, i)
			} else {
				seen[at] = true
			}
		}
	}
	if exact < 3 {
		t.Errorf("%d of the tables are exact", exact)
	}
	if s := (&Table{Depth: 3, Skip: 1, Lines: make([]Line, 1<<10)}); s.IsExact() {
		t.Error("exact, though bytes are left out of the hash")
	}
}
