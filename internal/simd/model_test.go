package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// handmade is a tree put together node by node, with every level full. Its
// nodes are sorted, but need not be consistent with each other: what the
// search routines do then is still defined.
type handmade[C Code] struct {
	Tree
	pairs bool
	words []uint64 // keeps the memory alive; nodes start at a multiple of 64
}

// form is the geometry of a handmade tree.
type form struct {
	levels, top int
	pairs       bool // keys in the first half of a leaf only
	hybrid      bool // a fanout one less, as in the paper's hybrid tree
	short       int  // number of leaves missing from LastLeaf, and of entries missing from Len
}

func (f form) String() string {
	return fmt.Sprintf("%d levels, top %d, pairs %v, hybrid %v, %d short", f.levels, f.top, f.pairs, f.hybrid, f.short)
}

// forms returns all geometries of up to three inner levels.
func forms() (out []form) {
	for levels := range 4 {
		for top := range levels + 1 {
			for _, pairs := range []bool{false, true} {
				out = append(out, form{levels: levels, top: top, pairs: pairs})
			}
		}
	}
	return append(out,
		form{levels: 1, top: 1, short: 3}, form{levels: 2, pairs: true, short: 20},
		form{levels: 1, hybrid: true, pairs: true}, form{levels: 3, top: 1, hybrid: true})
}

// alignedWords returns memory aligned as nodes are.
func alignedWords(n int) []uint64 {
	buf := make([]uint64, n+LineBytes/8)
	for uintptr(unsafe.Pointer(&buf[0]))%LineBytes != 0 {
		buf = buf[1:]
	}
	return buf
}

// makeTree builds a tree of a form and fills its nodes.
func makeTree[C Code](f form, fill func(node []C)) *handmade[C] {
	slots := nodeKeys[C]()
	fanout := slots + 1
	if f.hybrid {
		fanout = slots
	}
	counts := []int{1}
	total := 1
	for range f.levels {
		counts = append(counts, counts[len(counts)-1]*fanout)
		total += counts[len(counts)-1]
	}
	// A node of a hybrid tree that counts all its keys leads one child too
	// far. At the end of a level that is past it, by at most an eighth of the
	// tree.
	t := &handmade[C]{pairs: f.pairs, words: alignedWords(total * 9)}
	t.Base = unsafe.Pointer(&t.words[0])
	t.Levels, t.Top = f.levels, f.top
	t.Fanout, t.Distance = uint64(fanout), 1
	place := 0
	for l := range f.levels {
		below := place + counts[l]*8
		t.Next[l] = int64(below - fanout*place)
		place = below
	}
	leaves := counts[f.levels]
	t.Leaves = uint64(place)
	t.LastLeaf = t.Leaves + uint64(leaves-1-f.short)*8
	per := slots
	if f.pairs {
		per /= 2
	}
	for 1<<t.LeafShift < per {
		t.LeafShift++
	}
	t.LeafMask = 1<<per - 1
	t.Len = uint64(leaves*per - f.short)
	for x := range total {
		fill(nodeAt[C](&t.Tree, uint64(x*8)))
	}
	return t
}

// filling is a way to fill a node that tries to break something.
type filling[C Code] struct {
	name string
	fill func(node []C)
}

func fillings[C Code](rng *rand.Rand) []filling[C] {
	top := ^C(0)
	choose := func(from ...C) func([]C) {
		return func(node []C) {
			for i := range node {
				node[i] = from[rng.IntN(len(from))]
			}
			slices.Sort(node)
		}
	}
	random := func(node []C) {
		for i := range node {
			node[i] = C(rng.Uint64())
		}
		slices.Sort(node)
	}
	kinds := []filling[C]{
		{"all zero", choose(0)},
		{"all maximum", choose(top)},
		{"all equal", choose(top / 3)},
		{"ends", choose(0, 1, top-1, top)},
		{"sign border", choose(top/2, top/2+1, top/2+2)},
		{"few", choose(10, 20, 30)},
		{"random", random},
	}
	return append(kinds, filling[C]{"mixed", func(node []C) { kinds[rng.IntN(len(kinds))].fill(node) }})
}

// named returns the filling with the given name.
func named[C Code](name string, rng *rand.Rand) func(node []C) {
	for _, kind := range fillings[C](rng) {
		if kind.name == name {
			return kind.fill
		}
	}
	panic("no filling " + name)
}

// asked returns n keys to search for in a tree, most of them equal or next to
// a key of some node.
func asked[C Code](t *handmade[C], n int, rng *rand.Rand) []C {
	nodes := int(t.LastLeaf/8) + 1
	fixed := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1}
	keys := make([]C, n)
	for i := range keys {
		node := nodeAt[C](&t.Tree, uint64(rng.IntN(nodes)*8))
		switch rng.IntN(6) {
		case 0:
			keys[i] = fixed[rng.IntN(len(fixed))]
		case 1:
			keys[i] = C(rng.Uint64())
		default:
			keys[i] = node[rng.IntN(len(node))] + C(rng.IntN(3)) - 1
		}
	}
	return keys
}

// answer is everything that can be asked about one key.
type answer[C Code] struct {
	rank  int
	place int // rank of the first entry with the key, or -1
	val   C
}

// descend answers one key as the doc comments define it, without any of the
// package's search code.
func descend[C Code](t *handmade[C], key C) answer[C] {
	line := func(place int) []C {
		return unsafe.Slice((*C)(unsafe.Pointer(&t.words[place])), LineBytes/unsafe.Sizeof(key))
	}
	below := func(keys []C) (n int) {
		for n < len(keys) && keys[n] < key {
			n++
		}
		return n
	}
	place := 0
	for l := range t.Levels {
		place = int(t.Fanout)*place + 8*below(line(place)) + int(t.Next[l])
	}
	place = min(place, int(t.LastLeaf))
	per := 1 << t.LeafShift
	if t.LeafMask == 0 {
		per = 0
	}
	leaf := line(place)
	first := (place - int(t.Leaves)) / 8 << t.LeafShift
	a := answer[C]{place: -1}
	a.rank = min(first+below(leaf[:per]), int(t.Len))
	if i := slices.Index(leaf[:per], key); i >= 0 {
		a.place = first + i
		if t.pairs {
			a.val = leaf[len(leaf)/2+i]
		}
	}
	return a
}

func answers[C Code](t *handmade[C], keys []C) []answer[C] {
	out := make([]answer[C], len(keys))
	for i, k := range keys {
		out[i] = descend(t, k)
	}
	return out
}
