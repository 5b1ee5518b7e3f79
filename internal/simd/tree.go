// Package simd searches trees of one-cache-line nodes with the vector units of
// the CPU: AVX-512, AVX2, or plain Go, which defines what the others must do.
//
// A node is 64 bytes of sorted keys: 8 of 64 bits or 16 of 32. One step down
// counts the keys of a node that are below the key searched for; that count
// is the number of the child to go on to. Counting "below" makes every search
// a lower bound, and lets any key value fill unused places: the maximum is
// never below anything.
//
// The speed of a batch is decided not by the comparisons but by the wait for
// the next node. So the queries of a batch go down as on a staircase: while
// query i is at the leaves, query i+Distance is one level higher, query
// i+2·Distance two, and each step ends with a prefetch of the node that the
// same query will need Distance steps later. Unlike the paper's pipeline
// (HB+-tree, appendix B.2), which takes P queries through a level before any
// of them enters the next, this keeps memory and arithmetic busy all the time:
// bench experiment pipeline-length.
package simd

import "unsafe"

// Code is a key in the form that the trees hold.
type Code interface{ uint32 | uint64 }

// MaxLevels bounds the inner levels of a tree: 2^32 leaves with fanout 8 have
// 11.
const MaxLevels = 15

// LineBytes is the size of a node in bytes.
const LineBytes = 64

// Tree describes a tree to the search routines. A node is identified by its
// place: its offset from Base in 8-byte words. The root is at place 0, the
// leaves come last, and everything in between is readable. Thus even a search
// that reads garbage (see arena.Block.Release) stays inside, as long as it is
// clamped to LastLeaf at the end. That takes the whole tree: kernels, which may
// have some levels only, clamp on each (kernel.Tree).
//
// The assembly reads the fields at fixed offsets; tree_amd64_test.go checks
// them.
type Tree struct {
	Base      unsafe.Pointer
	Next      [MaxLevels + 1]int64 // from place x of level l, child j is at Fanout·x + 8·j + Next[l]
	Levels    int                  // inner levels
	Top       int                  // number of first levels that are small enough to be walked without waiting
	Fanout    uint64               // children of an inner node
	Leaves    uint64               // place of the first leaf
	LastLeaf  uint64               // place of the last leaf
	LeafMask  uint64               // a bit for each slot of a leaf that holds a key
	LeafShift uint64               // a leaf has 1<<LeafShift keys
	Len       uint64               // total number of entries
	Distance  uint64               // queries between two steps of one query, at least 1
	Vals      unsafe.Pointer       // column of values to prefetch from, for Find; may be nil
	ValSize   uint64               // bytes of a value in that column
	From      int                  // level at which a search begins, see Part
}

// Part returns the tree as seen by a search that goes from level from to level
// to; level t.Levels is the leaves. If from is above 0, the place that a query
// has reached is passed in where its result will be stored.
func (t *Tree) Part(from, to int) Tree {
	part := *t
	part.From, part.Levels = from, to
	part.Top = min(max(t.Top, from), to)
	if from == t.Levels { // a single step is short: more queries in flight cover the wait
		part.Distance *= 4
	}
	return part
}

// MaxPlace bounds LastLeaf in trees that GetPairs searches for 32-bit keys:
// between two steps, a place is kept where the value will be stored.
const MaxPlace = 1<<32 - 1

// nodeAt returns the keys of the node at a place.
func nodeAt[C Code](t *Tree, place uint64) []C {
	return unsafe.Slice((*C)(unsafe.Add(t.Base, place*8)), nodeKeys[C]())
}

// child returns the place of child j of the node at a place of level l.
func (t *Tree) child(l int, place uint64, j int) uint64 {
	return t.Fanout*place + 8*uint64(j) + uint64(t.Next[l])
}

// entry returns the rank of the entry in slot j of the leaf at a place.
func (t *Tree) entry(place uint64, j int) uint64 {
	return (place-t.Leaves)<<t.LeafShift>>3 + uint64(j)
}

// nodeKeys returns the number of keys that fit in a node.
func nodeKeys[C Code]() int {
	var c C
	return LineBytes / int(unsafe.Sizeof(c))
}

// Place returns the place of the first node of a level; level Levels is the
// leaves.
func (t *Tree) Place(level int) (place uint64) {
	for l := range level {
		place = t.child(l, place, 0)
	}
	return place
}
