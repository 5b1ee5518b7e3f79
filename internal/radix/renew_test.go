package radix

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
)

// A walk in pieces visits what is a top when it comes there, each once, and misses none
// of what stays, whatever is changed between two pieces.
func TestWalkBesideChanges(t *testing.T) {
	rng := seed.Rand(t)
	for range 300 {
		tree := New(0)
		letters, longest := 1+rng.IntN(4), 1+rng.IntN(8)
		draw := func() string {
			k := make([]byte, rng.IntN(longest+1))
			for i := range k {
				k[i] = byte(rng.IntN(letters)) * 85
			}
			return string(k)
		}
		stays := model{}
		for range rng.IntN(60) {
			k := draw()
			stays[k] = 0
			tree.Set(k, 0)
		}
		s := &shortcut.Table{Depth: rng.IntN(longest + 1)}
		visited := map[string]bool{}
		w := tree.walkTops(s, func(l link) {
			key := tree.key(anyLeaf(l))
			if len(key) < s.Depth {
				return
			}
			if top := tree.topOf(s, key); top != l {
				t.Fatalf("link %x visited, and the top of %q is %x", l, key, top)
			}
			if key = key[:s.Depth]; visited[key] {
				t.Fatalf("the top of %q visited twice", key)
			}
			visited[key] = true
		})
		for w.some(1 + rng.IntN(4)) {
			for range rng.IntN(8) {
				k := draw()
				if _, ok := stays[k]; ok {
					continue
				}
				if rng.IntN(2) == 0 {
					tree.Set(k, 1)
				} else {
					tree.Delete(k)
				}
			}
		}
		for k := range stays {
			if len(k) >= s.Depth && !visited[k[:s.Depth]] {
				t.Fatalf("no top of %q was visited", k)
			}
		}
		mustCheck(t, tree)
		tree.Close()
	}
}

// The depth is the greatest with at most so many tops, and keys above them.
func TestCountTops(t *testing.T) {
	rng := seed.Rand(t)
	for range 100 {
		tree := New(0)
		m := model{}
		for range 1 + rng.IntN(300) {
			k := make([]byte, rng.IntN(6))
			for i := range k {
				k[i] = byte(rng.IntN(3)) * 100
			}
			m[string(k)] = 0
			tree.Set(string(k), 0)
		}
		most := 1 + rng.IntN(40)
		c := tree.countTops(most)
		tops, depth := c.tops, c.depth
		if got := topsAt(m, depth); tops != max(got, 1) && got <= most {
			t.Fatalf("%d tops at depth %d of %d keys, not %d", got, depth, len(m), tops)
		}
		if got := topsAt(m, depth); got > most && depth > shared(m) {
			t.Fatalf("%d tops at depth %d, at most %d wanted", got, depth, most)
		}
		if got := topsAt(m, depth+1); got <= most && depth < 6 {
			t.Fatalf("depth %d, and there are %d tops at the next of at most %d", depth, got, most)
		}
		tree.Close()
	}
}

// topsAt returns how many tops there are at a depth, and keys that end above them.
func topsAt(m model, depth int) int {
	tops := map[string]bool{}
	for k := range m {
		tops[k[:min(len(k), depth)]] = true
	}
	return len(tops)
}

// shared returns how many bytes all keys begin with.
func shared(m model) int {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return simd.CommonPrefix(slices.Min(keys), slices.Max(keys))
}

// renewed waits until all shortcuts are made that are due.
func renewed(tree *Tree) *shortcut.Table {
	for due := true; due; due = tree.shortDue() {
		tree.renewShort()
		awaitRenewal(tree)
	}
	return tree.short.Load()
}

// awaitRenewal waits for the goroutine that makes new shortcuts, if there is one, and
// returns those that are there then.
func awaitRenewal(tree *Tree) *shortcut.Table {
	tree.renewal.Lock()
	defer tree.renewal.Unlock()
	return tree.short.Load()
}

// While somebody makes new shortcuts, others write on; who is done makes those that have
// fallen due meanwhile, and writers ask again.
func TestRenewBesideChanges(t *testing.T) {
	for _, beside := range []int64{0, renewBeside} {
		t.Run(fmt.Sprint(beside), func(t *testing.T) { renewBesideChanges(t, beside) })
	}
}

func renewBesideChanges(t *testing.T, beside int64) {
	defer func(n int64) { renewBeside = n }(renewBeside)
	renewBeside = beside
	tree := New(0)
	defer tree.Close()
	set := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			tree.Set(fmt.Sprintf("%d/%d", i%10, i), 1)
		}
	}
	set(0, 100)
	before := renewed(tree)
	tree.renewal.Lock()
	set(100, 1000)
	if tree.short.Load() != before {
		t.Error("two make shortcuts at a time")
	}
	tree.renewal.Unlock()
	set(1000, 1000+whileRenewed*mostDesks())
	if s := awaitRenewal(tree); s == before || s.Built < 1000 {
		t.Error("no new shortcuts were made")
	}
	mustCheck(t, tree)

	// An exchange for fewer entries than there are has others follow.
	tree.exchangeShort(10, tree.countTops(5))
	if tree.renewShort(); tree.short.Load().Built < 1000 {
		t.Error("shortcuts are those for a small tree")
	}
	mustCheck(t, tree)
	if _, err := tree.DeleteRange("", "~", nil); err != nil || renewed(tree) != nil {
		t.Errorf("shortcuts are left of an empty tree, %v", err)
	}
}
