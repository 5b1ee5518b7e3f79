package trie

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/shortcut"
)

// wideTexts returns sorted strings over some letters, some of them twice, and prefixes
// of each other.
func wideTexts(rng *rand.Rand, n, longest int, prefix, letters string) []string {
	keys := make([]string, n)
	for i := range keys {
		b := []byte(prefix)
		for range rng.IntN(longest + 1) {
			b = append(b, letters[rng.IntN(len(letters))])
		}
		keys[i] = string(b)
	}
	slices.Sort(keys)
	return keys
}

const allLetters = "\x00\x01\x02\x03\x07\x08\x7f\x80\xfe\xff0123456789abcdefxyz"

// near returns a key, or what is like one.
func near(rng *rand.Rand, keys []string) string {
	k := []byte(keys[rng.IntN(len(keys))])
	switch at := rng.IntN(len(k) + 1); rng.IntN(5) {
	case 0:
		return string(k[:at])
	case 1:
		return string(append(k[:at:at], byte(rng.Uint32())))
	case 2:
		return string(append(k, allLetters[rng.IntN(len(allLetters))]))
	case 3:
		if at < len(k) {
			k[at] += byte(rng.IntN(3)) - 1
		}
	}
	return string(k)
}

// answers compares all searches with those in a sorted list.
func answers(t *testing.T, tree *StringTree, keys []string, rng *rand.Rand) {
	t.Helper()
	const n = 500
	q, found, below := make([]string, n), make([]int, n), make([]int, n)
	for i := range q {
		q[i] = near(rng, keys)
	}
	tree.Find(q, found)
	tree.Rank(q, below)
	for i, k := range q {
		at := sort.SearchStrings(keys, k)
		after := sort.Search(len(keys), func(i int) bool { return keys[i] > k })
		want := -1
		if after > at {
			want = at
		}
		rank, equal := tree.Seek(k)
		if rank != at || equal != (after > at) || tree.After(k) != after || found[i] != want || below[i] != at {
			t.Fatalf("key %q: Seek %d %v, After %d, Find %d, Rank %d; want %d %v %d", k, rank, equal, tree.After(k), found[i], below[i], at, after > at, after)
		}
	}
}

// Wide nodes of every span of bytes and bits, wherever they fit, answer as a sorted
// list does.
func TestWideNodes(t *testing.T) {
	rng := seed.Rand(t)
	made, below := 0, 0
	for _, letters := range []string{"ab", "0123456789abcdef", "\x00\xff", allLetters, "aeiou\x00"} {
		for _, n := range []int{17, 300, 1000, 5000} {
			for m := 2; m <= mostWide; m++ {
				for _, shift := range []int{0, 1, 4, 7} {
					if !seed.Long() && n > 300 && rng.IntN(4) > 0 {
						continue
					}
					keys := wideTexts(rng, n, 1+rng.IntN(12), "p"[:rng.IntN(2)], letters)
					w := Wide{Bytes: m, Bits: 8 - shift, Least: 2, Below: rng.IntN(2) == 0}
					built, err := Strings{Table{Bytes: rng.IntN(3)}, w}.Build(keys, nil, layout.Config{Workers: 2})
					if err != nil {
						t.Fatal(err)
					}
					tree := built.(*StringTree)
					switch {
					case tree.root.kind() == trieWide:
						made++
					case tree.head.wide > 0:
						below++
					}
					if err := tree.Check(); err != nil {
						t.Fatal(err)
					}
					answers(t, tree, keys, rng)
					tree.Release()
				}
			}
		}
	}
	if made < seed.Size(10, 30) || below < seed.Size(1, 10) { // in a quick run some 47 and 12
		t.Errorf("%d trees with a wide root, %d with wide nodes below: too few to say anything", made, below)
	}
}

// Wide nodes over spans of keys that several workers grow are those of one.
func TestWideSpans(t *testing.T) {
	rng := seed.Rand(t)
	n := seed.Size(2*spanKeys+spanKeys/4, 3*spanKeys)
	sets := map[string][]string{
		"one slot for many keys": wideTexts(rng, n, 9, "", "ab"),
		"digits":                 wideTexts(rng, n, 8, "x", "0123456789"),
		"runs":                   nil,
	}
	for i := range 2*spanKeys + 100 {
		sets["runs"] = append(sets["runs"], fmt.Sprintf("%c%05d", "abc"[i/(spanKeys-50)], i/7*3))
	}
	slices.Sort(sets["runs"])
	for name, keys := range sets {
		for _, w := range []Wide{{Bytes: 4}, {Bytes: 5, Bits: 6}, {Bytes: 2, Below: true, Least: 2}, {}} {
			if !seed.Long() && rng.IntN(2) > 0 {
				continue
			}
			var first []byte
			for _, workers := range []int{1, 3} {
				built, err := Strings{Table{Bytes: 1}, w}.Build(keys, nil, layout.Config{Workers: workers})
				if err != nil {
					t.Fatal(err)
				}
				tree := built.(*StringTree)
				if tree.head.wide == 0 && w.Bytes > 0 {
					t.Errorf("%s: no wide node for %+v", name, w)
				}
				if err := tree.Check(); err != nil {
					t.Fatalf("%s, %+v: %v", name, w, err)
				}
				if answers(t, tree, keys, rng); first != nil && !bytes.Equal(first, tree.nodes) {
					t.Errorf("%s, %+v: %d workers make another tree", name, w, workers)
				}
				first = bytes.Clone(tree.nodes)
				tree.Release()
			}
		}
	}
}

// Whatever the bytes of wide nodes in a file are, searches end; and Check sees each byte
// that is not what it should be.
func TestWideDamage(t *testing.T) {
	rng := seed.Rand(t)
	for _, w := range []Wide{{Bytes: 3, Bits: 5}, {Bytes: 2, Below: true, Least: 2}} {
		keys := wideTexts(rng, 3000, 6, "p", "0123456789abcdef")
		built, err := Strings{Table{Bytes: 1}, w}.Build(keys, nil, layout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		tree := built.(*StringTree)
		if tree.head.wide == 0 {
			t.Fatalf("no wide node for %+v", w)
		}
		line := int(unsafe.Sizeof(trieHead{}))
		wide := tree.nodes[line:][:int(tree.head.wide)*lineBytes]
		for range seed.Times(150, 400) {
			at := rng.IntN(len(wide))
			if rng.IntN(2) == 0 {
				at = rng.IntN(min(len(wide), 3*lineBytes))
			}
			old := wide[at]
			wide[at] ^= byte(1 + rng.IntN(255))
			if tree.Check() == nil {
				t.Fatalf("%+v: byte %d of wide nodes is another, and Check is content", w, at)
			}
			for range 50 {
				k := near(rng, keys)
				tree.Seek(k)
				tree.After(k)
			}
			var ranks [64]int
			tree.Find(keys[:64], ranks[:])
			tree.Rank(keys[:64], ranks[:])
			wide[at] = old
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		tree.Release()
	}
}

// The cost model makes the root of dense numbers wide, which takes less memory than nodes
// do, and never takes much more.
func TestWideChoice(t *testing.T) {
	defer func(least, per int64) { shortcut.Least, shortcut.PerTop = least, per }(shortcut.Least, shortcut.PerTop)
	shortcut.Least, shortcut.PerTop = 4096, 8
	rng := seed.Rand(t)
	const n = 1 << 17
	dense, random := make([]uint64, n), make([]uint64, n)
	for i := range dense {
		dense[i], random[i] = uint64(i), rng.Uint64()
	}
	slices.Sort(random)
	for _, x := range []struct {
		codes []uint64
		wide  bool
	}{{dense, true}, {random, false}} {
		var bytes [2]int64
		for i, w := range []Wide{{Off: true}, {}} {
			tree, err := Numbers[uint64]{Wide: w}.Build(layout.Source[uint64]{Len: n, Codes: x.codes}, layout.Config{Pages: arena.Small})
			if err != nil {
				t.Fatal(err)
			}
			head := tree.(*NumberTree[uint64]).head
			if i == 1 && x.wide && head.wide == 0 {
				t.Errorf("%d lines of wide nodes for %x...", head.wide, x.codes[:3])
			}
			bytes[i] = tree.Stats().TotalBytes
			tree.Release()
		}
		if bytes[1] > bytes[0]+mostMore*n {
			t.Errorf("%d bytes with wide nodes, %d without", bytes[1], bytes[0])
		}
	}
}

// A viewer is told how many nodes a search goes through, wide ones once.
func TestWideLook(t *testing.T) {
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("%02d", i))
	}
	built, err := Strings{Table{Off: true}, Wide{Bytes: 2, Least: 2}}.Build(keys, nil, layout.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Release()
	k := built.(*StringTree).Look().(trieLook)
	if got := k.way("42"); got != "found from the root by way of 1 nodes" {
		t.Error(got)
	}
}
