package simd

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// eachPath runs a test on every path of this machine.
func eachPath(t *testing.T, test func(t *testing.T)) {
	for _, p := range Paths() {
		t.Run(p.String(), func(t *testing.T) {
			defer Use(p)()
			test(t)
		})
	}
}

// bothWidths runs a test for keys of 32 and of 64 bits.
func bothWidths(t *testing.T, narrow, wide func(t *testing.T)) {
	t.Run("32 bits", narrow)
	t.Run("64 bits", wide)
}

// lengths returns batch lengths around every vector width and group size, and
// around the longest staircase.
func lengths() []int {
	out := []int{127, 128, 129}
	for n := range 3*16 + 1 {
		out = append(out, n)
	}
	return out
}

const longest = 129

func TestCountLessAroundEverySlot(t *testing.T) {
	bothWidths(t, countLess[uint32], countLess[uint64])
}

// countLess tries every key equal or next to every slot. The
// count shows in the leaf that the path goes on to: leaves full of the maximum
// count nothing themselves.
func countLess[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, kind := range fillings[C](rng) {
		for range 20 {
			node := make([]C, nodeKeys[C]())
			kind.fill(node)
			keys := []C{0, 1, ^C(0), ^C(0) - 1}
			for _, k := range node {
				keys = append(keys, k-1, k, k+1)
			}
			checkNode(t, kind.name, node, keys)
		}
	}
}

func checkNode[C Code](t *testing.T, what string, node, keys []C) {
	t.Helper()
	want := make([]int, len(keys))
	for i, key := range keys {
		for _, k := range node {
			if k < key {
				want[i]++
			}
		}
		if got := linear(node, key); got != want[i] {
			t.Errorf("%s: linear(%d, %d) = %d, want %d", what, node, key, got, want[i])
		}
	}
	tree := makeTree(form{levels: 1}, func(n []C) {
		for i := range n {
			n[i] = ^C(0)
		}
	})
	copy(nodeAt[C](&tree.Tree, 0), node)
	for _, p := range Paths() {
		undo := Use(p)
		ranks := make([]int, len(keys))
		Rank(&tree.Tree, keys, ranks)
		undo()
		for i, r := range ranks {
			if r != want[i]*nodeKeys[C]() {
				t.Errorf("%s, %v: key %d in node %d goes to entry %d, want child %d", what, p, keys[i], node, r, want[i])
			}
		}
	}
}

func TestPathsEqualTheDefinition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, pathEqual[uint32], pathEqual[uint64])
	})
}

// pathEqual searches batches of every length in trees of every form and
// filling.
func pathEqual[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, f := range forms() {
		for _, kind := range fillings[C](rng) {
			if !seed.Long() && f.levels == 3 && kind.name != "mixed" {
				continue
			}
			tree := makeTree(f, kind.fill)
			tree.Distance = uint64(1 + rng.IntN(20))
			keys := asked(tree, longest, rng)
			want := answers(tree, keys)
			for _, n := range lengths() {
				if err := checkBatch(tree, keys[:n], want[:n]); err != nil {
					t.Fatalf("%v, %s, distance %d, batch of %d: %v", f, kind.name, tree.Distance, n, err)
				}
			}
		}
	}
}

func TestEveryDistance(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, everyDistance[uint32], everyDistance[uint64])
	})
}

// everyDistance searches batches of every length at every distance.
func everyDistance[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, f := range []form{{levels: 0}, {levels: 2, top: 0}, {levels: 3, top: 1, pairs: true}} {
		tree := makeTree(f, named[C]("mixed", rng))
		keys := asked(tree, longest, rng)
		want := answers(tree, keys)
		for d := 1; d <= 128; d++ {
			tree.Distance = uint64(d)
			for _, n := range lengths() {
				if err := checkBatch(tree, keys[:n], want[:n]); err != nil {
					t.Fatalf("%v, distance %d, batch of %d: %v", f, d, n, err)
				}
			}
		}
	}
}

// An empty tree is a leaf without entries, whatever lies in its memory.
func TestEmptyTreeHoldsNothing(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, emptyTree[uint32], emptyTree[uint64])
	})
}

func emptyTree[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, kind := range fillings[C](rng) {
		tree := makeTree(form{pairs: true}, kind.fill)
		tree.LeafMask, tree.Len = 0, 0
		keys := asked(tree, longest, rng)
		if err := checkBatch(tree, keys, answers(tree, keys)); err != nil {
			t.Errorf("%s: %v", kind.name, err)
		}
	}
}

// checkBatch asks everything there is to ask about keys.
func checkBatch[C Code](t *handmade[C], keys []C, want []answer[C]) error {
	before := slices.Clone(keys)
	err := checkPlaces(keys, func(ranks []int) { Rank(&t.Tree, keys, ranks) }, func(i int) int { return want[i].rank })
	if err != nil {
		return fmt.Errorf("rank: %w", err)
	}
	err = checkPlaces(keys, func(ranks []int) { Find(&t.Tree, keys, ranks) }, func(i int) int { return want[i].place })
	if err != nil {
		return fmt.Errorf("find: %w", err)
	}
	if err := checkSeek(t, keys, want); err != nil {
		return err
	}
	if t.pairs {
		if err := checkGet(t, keys, want); err != nil {
			return err
		}
	}
	if !slices.Equal(keys, before) {
		return fmt.Errorf("the keys have changed")
	}
	return nil
}

const untouched = -77

// checkPlaces lets run fill a slice longer than keys and checks all of it.
func checkPlaces[C Code](keys []C, run func([]int), want func(int) int) error {
	got := make([]int, len(keys)+2)
	for i := range got {
		got[i] = untouched
	}
	run(got)
	for i, k := range keys {
		if got[i] != want(i) {
			return fmt.Errorf("key %d: %d, want %d", k, got[i], want(i))
		}
	}
	if got[len(keys)] != untouched || got[len(keys)+1] != untouched {
		return fmt.Errorf("written behind the end: %d", got[len(keys):])
	}
	return nil
}

func checkSeek[C Code](t *handmade[C], keys []C, want []answer[C]) error {
	for i, k := range keys {
		rank, equal := Seek(&t.Tree, k)
		if rank != want[i].rank || equal != (want[i].place >= 0) {
			return fmt.Errorf("Seek(%d) = %d, %v; want %d, %v", k, rank, equal, want[i].rank, want[i].place >= 0)
		}
	}
	return nil
}

func checkGet[C Code](t *handmade[C], keys []C, want []answer[C]) error {
	wantHits := 0
	for _, a := range want {
		if a.place >= 0 {
			wantHits++
		}
	}
	mark := ^C(0) / 5
	for _, found := range [][]bool{nil, make([]bool, len(keys)+2)} {
		vals := make([]C, len(keys)+2)
		for i := range vals {
			vals[i] = mark
		}
		for i := range found { // the wrong way round, so that all must be set
			found[i] = i >= len(want) || want[i].place < 0
		}
		if hits := GetPairs(&t.Tree, keys, vals, found); hits != wantHits {
			return fmt.Errorf("%d hits, want %d", hits, wantHits)
		}
		for i, k := range keys {
			if vals[i] != want[i].val || found != nil && found[i] != (want[i].place >= 0) {
				return fmt.Errorf("value of %d is %d, want %d; found %v", k, vals[i], want[i].val, found)
			}
		}
		n := len(keys)
		if vals[n] != mark || vals[n+1] != mark || found != nil && !(found[n] && found[n+1]) {
			return fmt.Errorf("written behind the end: %d, %v", vals[n:], found)
		}
	}
	return nil
}

// Prefetches must not fault wherever they point: neither those of Find for
// values, nor explicit ones.
func TestPrefetchAnywhere(t *testing.T) {
	rng := seed.Rand(t)
	tree := makeTree(form{levels: 2, top: 1}, named[uint64]("mixed", rng))
	keys := asked(tree, longest, rng)
	want := answers(tree, keys)
	column := make([]byte, 8)
	eachPath(t, func(t *testing.T) {
		for _, size := range []uint64{0, 4, 8, 24, 1 << 40} {
			tree.Vals, tree.ValSize = unsafe.Pointer(&column[0]), size
			if err := checkBatch(tree, keys, want); err != nil {
				t.Errorf("values of %d bytes: %v", size, err)
			}
		}
		for _, lines := range []int{-1, 0, 1, 1000} {
			tree.Prefetch(tree.LastLeaf, lines)
		}
	})
}

func TestShortResultsPanic(t *testing.T) {
	tree := makeTree(form{pairs: true}, func([]uint64) {})
	keys := make([]uint64, 9)
	eachPath(t, func(t *testing.T) {
		for name, call := range map[string]func(){
			"rank":  func() { Rank(&tree.Tree, keys, make([]int, 8)) },
			"find":  func() { Find(&tree.Tree, keys, make([]int, 8)) },
			"vals":  func() { GetPairs(&tree.Tree, keys, make([]uint64, 8), nil) },
			"found": func() { GetPairs(&tree.Tree, keys, make([]uint64, 9), make([]bool, 8)) },
		} {
			if !panics(call) {
				t.Errorf("%s: a short result slice was taken", name)
			}
		}
	})
}

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return false
}

func TestUseGoesBack(t *testing.T) {
	fastest := Active()
	for _, p := range Paths() {
		undo := Use(p)
		if Active() != p {
			t.Errorf("Use(%v) is %v", p, Active())
		}
		undo()
		if Active() != fastest {
			t.Errorf("undoing %v gives %v, want %v", p, Active(), fastest)
		}
	}
	for _, p := range []Path{Go, AVX2, AVX512} {
		if !slices.Contains(Paths(), p) && !panics(func() { Use(p) }) {
			t.Errorf("Use(%v) works on a machine without it", p)
		}
	}
}
