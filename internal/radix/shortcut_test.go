package radix

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/shortcut"
)

// Tests have shortcuts in small trees, and make them in small pieces.
func init() { shortcut.Least, shortcut.PerTop, renewPiece = 2, 2, 2 }

// usualShort is shortcut.Least, shortcut.PerTop and renewPiece as programs have them.
var usualShort = [...]int64{shortcut.Least, shortcut.PerTop, int64(renewPiece)}

// asInPrograms has a benchmark make shortcuts as programs do.
func asInPrograms(b *testing.B) {
	least, per, piece := shortcut.Least, shortcut.PerTop, renewPiece
	shortcut.Least, shortcut.PerTop, renewPiece = usualShort[0], usualShort[1], int(usualShort[2])
	b.Cleanup(func() { shortcut.Least, shortcut.PerTop, renewPiece = least, per, piece })
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
	if s == nil || s.Skip != len("https://www.example.com/") {
		t.Fatalf("shortcuts %+v", s)
	}
	used := 0
	for k, v := range m {
		top, _ := s.Enter(k)
		l, _ := descend(link(top), k)
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
