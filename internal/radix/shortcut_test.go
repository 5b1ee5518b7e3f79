package radix

import (
	"fmt"
	"strings"
	"testing"
)

// Tests have shortcuts in small trees.
func init() { leastShort, perTop = 2, 2 }

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
	s := tree.short.Load()
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
	if tree.short.Load() != nil {
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
		_, depth := tree.topsOf(len(m) / 8)
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
