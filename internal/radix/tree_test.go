package radix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// model is a map and its sorted keys: the simplest thing that could be right.
type model map[string]uint64

func (m model) sorted() []string { return slices.Sorted(maps.Keys(m)) }

// keyMakers draw keys of several kinds.
var keyMakers = map[string]func(rng *rand.Rand) string{
	"few letters": func(rng *rand.Rand) string { return letters(rng, rng.IntN(8), "ab") },
	"edges":       func(rng *rand.Rand) string { return letters(rng, rng.IntN(6), "\x00\x01\x7f\xfe\xff") },
	"lengths": func(rng *rand.Rand) string {
		n := []int{0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 97, 127, 129, 191, 193, 243, 244, 245, 383, 384, 385, 500}
		return strings.Repeat("x", n[rng.IntN(len(n))]) + letters(rng, rng.IntN(3), "ay")
	},
	"wide": func(rng *rand.Rand) string { return string([]byte{byte(rng.IntN(3)), byte(rng.IntN(256))}) },
	"one prefix": func(rng *rand.Rand) string {
		return "https://www.example.com/a/long/common/prefix/" + letters(rng, 1+rng.IntN(3), "abcdefghij0123456789")
	},
	"tree of prefixes": func(rng *rand.Rand) string {
		return strings.Repeat("/directory", rng.IntN(5)) + letters(rng, rng.IntN(4), "/d")
	},
}

func letters(rng *rand.Rand, n int, of string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[rng.IntN(len(of))]
	}
	return string(b)
}

func TestAgainstModel(t *testing.T) {
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			tree, m := New(0), model{}
			defer tree.Close()
			for i := range 4000 {
				step1(t, rng, tree, m, draw)
				if i%97 == 0 {
					mustCheck(t, tree)
				}
			}
			compare(t, rng, tree, m, draw)
			empty(t, tree, m)
		})
	}
}

func mustCheck(t *testing.T, tree *Tree) {
	t.Helper()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}

// step1 does one operation on both.
func step1(t *testing.T, rng *rand.Rand, tree *Tree, m model, draw func(*rand.Rand) string) {
	t.Helper()
	k, v := draw(rng), rng.Uint64()
	want, wantHad := m[k]
	check := func(what string, old uint64, had bool, err error) {
		t.Helper()
		if old != want || had != wantHad || err != nil {
			t.Fatalf("%s(%q): was %d, %t, %v; want %d, %t", what, k, old, had, err, want, wantHad)
		}
	}
	switch rng.IntN(8) {
	case 0, 1, 2:
		old, had, err := tree.Set(k, v)
		check("Set", old, had, err)
		m[k] = v
	case 3, 4:
		old, had, err := tree.Delete(k)
		check("Delete", old, had, err)
		delete(m, k)
	case 5:
		keep := rng.IntN(2) == 0
		old, had, err := tree.Update(k, func(uint64, bool, uint64) (uint64, bool) { return v, keep })
		check("Update", old, had, err)
		if delete(m, k); keep {
			m[k] = v
		}
	case 6:
		if rng.IntN(10) == 0 {
			popBoth(t, rng, tree, m)
		}
		if rng.IntN(200) == 0 {
			rangeBoth(t, tree, m, k, draw(rng))
		}
	case 7:
		old, had := tree.Get(k)
		check("Get", old, had, nil)
	}
}

func popBoth(t *testing.T, rng *rand.Rand, tree *Tree, m model) {
	t.Helper()
	keys := m.sorted()
	greatest := rng.IntN(2) == 0
	k, v, ok, err := tree.Pop(greatest)
	if ok != (len(keys) > 0) || err != nil {
		t.Fatalf("Pop: %t, %v, of %d", ok, err, len(keys))
	}
	if !ok {
		return
	}
	want := keys[0]
	if greatest {
		want = keys[len(keys)-1]
	}
	if k != want || v != m[want] {
		t.Fatalf("Pop(%t) = %q, %d; want %q, %d", greatest, k, v, want, m[want])
	}
	delete(m, k)
}

func rangeBoth(t *testing.T, tree *Tree, m model, lo, hi string) {
	t.Helper()
	want := 0
	for _, k := range m.sorted() {
		if lo <= k && k <= hi {
			delete(m, k)
			want++
		}
	}
	if n, err := tree.DeleteRange(lo, hi, nil); n != want || err != nil {
		t.Fatalf("DeleteRange(%q, %q) = %d, %v, want %d", lo, hi, n, err, want)
	}
}

// reader is what Tree and Snapshot both are.
type reader interface {
	Len() int
	Get(string) (uint64, bool)
	Rank(string, bool) int
	At(int) (string, uint64, bool)
	Cursor() *Cursor
}

// compare compares a tree with the model by everything that reads.
func compare(t *testing.T, rng *rand.Rand, tree reader, m model, draw func(*rand.Rand) string) {
	t.Helper()
	keys := m.sorted()
	if tree.Len() != len(keys) {
		t.Fatalf("%d entries, want %d", tree.Len(), len(keys))
	}
	c := tree.Cursor()
	for i, k := range keys {
		if key, val, ok := c.Next(); key != k || val != m[k] || !ok {
			t.Fatalf("entry %d is %q, %d, %t; want %q, %d", i, key, val, ok, k, m[k])
		}
		if key, val, ok := tree.At(i); key != k || val != m[k] || !ok {
			t.Fatalf("At(%d) = %q, %d, %t; want %q, %d", i, key, val, ok, k, m[k])
		}
	}
	if key, _, ok := c.Next(); ok {
		t.Fatalf("%q behind the last", key)
	}
	c.MoveEnd(true)
	for i := len(keys) - 1; i >= 0; i-- {
		if key, val, ok := c.Next(); key != keys[i] || val != m[keys[i]] || !ok {
			t.Fatalf("down: entry %d is %q, %d, %t; want %q", i, key, val, ok, keys[i])
		}
	}
	for range 300 {
		k := draw(rng)
		at, there := slices.BinarySearch(keys, k)
		after := at
		if there {
			after++
		}
		if tree.Rank(k, false) != at || tree.Rank(k, true) != after {
			t.Fatalf("ranks of %q are %d and %d, want %d and %d", k, tree.Rank(k, false), tree.Rank(k, true), at, after)
		}
		if v, ok := tree.Get(k); v != m[k] || ok != there {
			t.Fatalf("Get(%q) = %d, %t", k, v, ok)
		}
		seek(t, c, k, false, false, keys, at)
		seek(t, c, k, true, false, keys, after)
		seek(t, c, k, false, true, keys, after-1)
		seek(t, c, k, true, true, keys, at-1)
	}
}

// seek compares three steps from a key on.
func seek(t *testing.T, c *Cursor, k string, open, down bool, keys []string, at int) {
	t.Helper()
	c.Move(k, open, down)
	for range 3 {
		key, _, ok := c.Next()
		if want := at >= 0 && at < len(keys); ok != want || ok && key != keys[at] {
			t.Fatalf("from %q, open %t, down %t: %q, %t; want entry %d of %d", k, open, down, key, ok, at, len(keys))
		}
		if at++; down {
			at -= 2
		}
	}
}

// empty deletes all keys, and looks whether all memory comes back.
func empty(t *testing.T, tree *Tree, m model) {
	t.Helper()
	for k, v := range m {
		if old, had, err := tree.Delete(k); old != v || !had || err != nil {
			t.Fatalf("Delete(%q) = %d, %t, %v; want %d", k, old, had, err, v)
		}
	}
	mustCheck(t, tree)
	settle(tree)
	if tree.Bytes() != 0 || tree.Len() != 0 {
		t.Fatalf("%d bytes and %d entries in an empty tree", tree.Bytes(), tree.Len())
	}
}

// settle makes what was retired free.
func settle(tree *Tree) {
	w := tree.lockWrite()
	defer tree.unlockWrite()
	for range 3 {
		tree.Hasten()
		tree.advance(w)
	}
}

// Nodes with as many children as each type holds, one more and one less, on the
// way up and down.
func TestNodeSizes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 11, 12, 13, 15, 16, 17, 20, 21, 22, 47, 48, 49, 255, 256} {
		for _, prefix := range []string{"", "a", "a prefix of more than twelve bytes", strings.Repeat("p", 400)} {
			for _, own := range []bool{false, true} {
				tree, m := New(0), model{}
				if own {
					m[prefix] = 7
				}
				for b := range n {
					m[prefix+string([]byte{byte(b * 37)})] = uint64(b)
				}
				for k, v := range m {
					if _, _, err := tree.Set(k, v); err != nil {
						t.Fatal(err)
					}
				}
				mustCheck(t, tree)
				rng := seed.Rand(t)
				compare(t, rng, tree, m, func(r *rand.Rand) string {
					return prefix[:r.IntN(len(prefix)+1)] + letters(r, r.IntN(3), "\x00\x25\xffpz")
				})
				empty(t, tree, m)
				tree.Close()
			}
		}
	}
}

func TestLongKeys(t *testing.T) {
	rng := seed.Rand(t)
	tree, m := New(0), model{}
	long := strings.Repeat("0123456789abcdef", seed.Size(1<<14, 1<<16))
	for i := range 20 {
		m[long+fmt.Sprint(i)] = uint64(i)
		m[long[:rng.IntN(len(long))]] = uint64(i)
	}
	for k, v := range m {
		tree.Set(k, v)
	}
	mustCheck(t, tree)
	if tree.Bytes() < int64(20*len(long)) {
		t.Errorf("%d bytes", tree.Bytes())
	}
	compare(t, rng, tree, m, func(r *rand.Rand) string { return long[:r.IntN(len(long))] + letters(r, r.IntN(2), "1") })
	empty(t, tree, m)
}
