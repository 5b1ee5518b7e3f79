package radix

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// Tests have shortcuts in small trees, and make them in small pieces.
func init() { leastShort, perTop, renewPiece = 2, 2, 2 }

// usualShort is leastShort, perTop and renewPiece as programs have them.
var usualShort = [...]int64{leastShort, perTop, int64(renewPiece)}

// asInPrograms has a benchmark make shortcuts as programs do.
func asInPrograms(b *testing.B) {
	least, per, piece := leastShort, perTop, renewPiece
	leastShort, perTop, renewPiece = usualShort[0], usualShort[1], int(usualShort[2])
	b.Cleanup(func() { leastShort, perTop, renewPiece = least, per, piece })
}

// Shortcuts follow the tree up and down, whatever its keys begin with, and find all
// that is there.
func TestShortcuts(t *testing.T) {
	tree, m := New(0), model{}
	defer tree.Close()
	for i := range 3000 {
		k := fmt.Sprintf("https://www.example.com/%d/%x", i%7, i*7919)
		m[k] = uint64(i)
		tree.Set(k, uint64(i))
	}
	mustCheck(t, tree)
	s := renewed(tree)
	if s == nil || s.skip != len("https://www.example.com/") {
		t.Fatalf("shortcuts %+v", s)
	}
	used := 0
	for k, v := range m {
		l, _ := s.enter(k)
		l, _ = descend(l, k)
		if got, ok, sure := tree.valueBy(s, l, k); sure { // else keys with another beginning share its slot
			used++
			if !ok || got != v {
				t.Fatalf("key %q by a shortcut: %d, %t", k, got, ok)
			}
		}
	}
	if used < len(m)/2 {
		t.Errorf("%d keys of %d have a shortcut", used, len(m))
	}
	for k := range m {
		if tree.Delete(k); len(m) > 4 {
			delete(m, k)
		}
	}
	if renewed(tree) != nil {
		t.Error("an empty tree has shortcuts")
	}
}

// Where most keys are prefixes of others, shortcuts are not so deep that these are too
// short for them.
func TestShortcutsOfPrefixes(t *testing.T) {
	for _, chains := range []int{1, 10, 300} {
		tree, m := New(0), model{}
		for i := range chains * 40 {
			k := fmt.Sprintf("r%03d%s", i%chains, strings.Repeat("x", i/chains))
			m[k] = uint64(i)
			tree.Set(k, uint64(i))
		}
		mustCheck(t, tree)
		depth := tree.countTops(len(m) / 8).depth
		long := 0
		for k := range m {
			if len(k) >= depth {
				long++
			}
		}
		if long < len(m)/2 {
			t.Errorf("%d chains: %d keys of %d have at least the %d bytes of shortcuts", chains, long, len(m), depth)
		}
		tree.Close()
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
		s := &shortcuts{depth: 2, lines: make([]shortLine, lines)}
		if !s.isExact() {
			continue
		}
		exact++
		seen := map[[2]int]bool{}
		for i := range 1 << 16 {
			line, tag := s.spread(s.hash(string([]byte{byte(i >> 8), byte(i)})))
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
	if s := (&shortcuts{depth: 3, skip: 1, lines: make([]shortLine, 1<<10)}); s.isExact() {
		t.Error("exact, though bytes are left out of the hash")
	}
}

// A byte is found among the keys of a small node, and nothing behind them.
func TestAmongTwelve(t *testing.T) {
	var node [16]uint64
	at := unsafe.Pointer(&node)
	rng := seed.Rand(t)
	for range 20000 {
		for i := range node {
			node[i] = rng.Uint64()
			if rng.IntN(2) == 0 { // bytes that are close to each other
				node[i] &= 0x0101010101010101
			}
		}
		kind := node2 + rng.IntN(3)
		keys := keysOf(at, kind)
		n := rng.IntN(len(keys) + 1)
		(*header)(at).meta = rng.Uint32()<<lengthBits | uint32(n)
		for i := range n { // no key is there twice
			for slices.Contains(keys[:i], keys[i]) {
				keys[i]++
			}
		}
		b := byte(rng.IntN(4))
		if n > 0 && rng.IntN(2) == 0 {
			b = keys[rng.IntN(n)]
		}
		if want, got := slices.Index(keys[:n], b), amongTwelve(at, kind, b); got != want {
			t.Fatalf("byte %d is key %d of %v, not %d", b, want, keys[:n], got)
		}
	}
}

// A line of shortcuts finds the link of each of its tags, and none for others, however
// close.
func TestShortLine(t *testing.T) {
	rng := seed.Rand(t)
	for range 20000 {
		var x shortLine
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
		want := link(0)
		if i := slices.Index(x.tags[:], tag); i >= 0 {
			want = link(x.links[i])
		}
		if got := x.get(tag); got != want {
			t.Fatalf("tag %#x of %#x has link %d, not %d", tag, x.tags, got, want)
		}
	}
	if l := new(shortLine).get(1); l != 0 {
		t.Errorf("an empty line has link %d", l)
	}
}
