package bplus

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// TestSpans reads a tree by spans in both directions, and changes it between
// entries: what a span has is what comes next for as long as its guard holds.
func TestSpans(t *testing.T) {
	testSpans[uint32](t, seed.Rand(t))
	testSpans[uint64](t, seed.Rand(t))
}

func testSpans[C Code](t *testing.T, rng *rand.Rand) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	var keys []C
	const space = 40_000
	for range 6000 {
		keys = append(keys, C(rng.Uint64N(space)))
	}
	keys = append(keys, 0, ^C(0))
	for _, k := range keys {
		tree.Set(k, ^k)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for range 200 {
		pos, down := C(rng.Uint64N(space)), rng.IntN(2) == 0
		c := tree.Ascend(0)
		c.Move(pos, down)
		for spans, used := 0, 0; spans < 20; spans++ {
			ks, vs, g := c.Span(1 + rng.IntN(600))
			i, _ := slices.BinarySearch(keys, pos)
			if down {
				if i < len(keys) && keys[i] == pos {
					i++
				}
				i -= len(ks)
			}
			if len(ks) == 0 && (down && i > 0 || !down && i < len(keys)) {
				t.Fatalf("no entries from %d on, down %t", pos, down)
			}
			if len(ks) == 0 {
				break
			}
			if i < 0 || i+len(ks) > len(keys) || !slices.Equal(ks, keys[i:i+len(ks)]) {
				t.Fatalf("from %d on, down %t: %d", pos, down, ks)
			}
			for j, k := range ks {
				if vs[j] != ^k {
					t.Fatalf("%d has value %d", k, vs[j])
				}
			}
			if !g.Holds() {
				t.Fatal("the guard does not hold though nobody has written")
			}
			if used = len(ks); rng.IntN(3) == 0 { // change the leaf after some entries
				used = 1 + rng.IntN(len(ks))
			}
			last := ks[used-1]
			if down {
				last = ks[len(ks)-used]
			}
			kept := slices.Clone(ks) // the slices are ours to change
			clear(ks)
			end := !down && last == ^C(0) || down && last == 0
			switch rng.IntN(3) {
			case 0:
				k := kept[rng.IntN(len(kept))]
				tree.Delete(k)
				at, _ := slices.BinarySearch(keys, k)
				keys = slices.Delete(keys, at, at+1)
				if g.Holds() {
					t.Fatal("the guard holds though the leaf has changed")
				}
				c.Resume(last)
			case 1:
				c.Undo()
				again, _, _ := c.Span(len(kept))
				if first := again[0]; !down && first != kept[0] {
					t.Fatalf("%d comes after Undo, not %d", first, kept[0])
				}
				c.Resume(last)
			default:
				if used < len(kept) {
					c.Resume(last)
				}
			}
			if end {
				break
			}
			if pos = last + 1; down {
				pos = last - 1
			}
		}
		c.Done()
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}
