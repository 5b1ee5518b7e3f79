package blocked

import (
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (t *Tree[C]) Rank(keys []C, ranks []int) { simd.RankDown(t.stairs, keys, ranks) }

// Find sets ranks[i] to the number of the first entry with key keys[i], or -1.
func (t *Tree[C]) Find(keys []C, ranks []int) { simd.FindDown(t.stairs, keys, ranks) }

// Seek returns the number of entries with a key below key, and reports
// whether the entry there has just that key.
func (t *Tree[C]) Seek(key C) (rank int, equal bool) {
	keys, ranks := [1]C{key}, [1]int{}
	t.Rank(keys[:], ranks[:])
	return ranks[0], ranks[0] < t.Len() && t.Key(ranks[0]) == key
}

// Depth returns the number of rows; level Depth is the leaves.
func (t *Tree[C]) Depth() int { return len(t.rows) }

// Descend takes queries from one row to another: places[i] becomes the place
// that keys[i] leads to. Where from is above 0, it is the place to begin at
// before. The place of a page is 8 times its number in its row, that of a leaf
// the one in package implicit: words from the start of the memory.
func (t *Tree[C]) Descend(from, to int, keys []C, places []int) {
	part := t.part(from, to)
	ready(t, from, places[:len(keys)])
	simd.Down(&part, keys, places)
}

// RankFrom is Rank for queries that have come to row from, at the places in
// ranks.
func (t *Tree[C]) RankFrom(from int, keys []C, ranks []int) {
	part := t.part(from, t.Depth())
	ready(t, from, ranks[:len(keys)])
	simd.RankDown(&part, keys, ranks)
}

// FindFrom is Find for queries that have come to row from, at the places in
// ranks.
func (t *Tree[C]) FindFrom(from int, keys []C, ranks []int) {
	part := t.part(from, t.Depth())
	ready(t, from, ranks[:len(keys)])
	simd.FindDown(&part, keys, ranks)
}

// Paired is a tree whose leaves are pairs: values come out of the line of their
// key.
type Paired[C simd.Code] struct{ *Tree[C] }

// GetPairs looks keys up; see simd.GetPairs.
func (t Paired[C]) GetPairs(keys, vals []C, found []bool) (hits int) {
	return simd.GetPairsDown(t.stairs, keys, vals, found)
}

// GetPairsFrom is GetPairs for queries that have come to row from, at the
// places in vals.
func (t Paired[C]) GetPairsFrom(from int, keys, vals []C, found []bool) (hits int) {
	part := t.part(from, t.Depth())
	ready(t.Tree, from, vals[:len(keys)])
	return simd.GetPairsDown(&part, keys, vals, found)
}

// part returns the stairs between two rows.
func (t *Tree[C]) part(from, to int) simd.Stairs {
	last := 0
	if to < t.Depth() {
		last = t.rows[to].Pages - 1
	}
	return t.stairs.Cut(t.first[from], t.first[to], last)
}

// ready makes places ready for the stairs, to which the first leaf is at 0.
func ready[C simd.Code, P int | uint32 | uint64](t *Tree[C], level int, places []P) {
	if level > 0 && level == t.Depth() {
		for i := range places {
			places[i] -= P(t.leaves.Leaves)
		}
	}
}

// PrefetchFrom names a column outside the tree whose value Find is to
// prefetch: values that live in a Go slice. It must outlive the tree.
func (t *Tree[C]) PrefetchFrom(vals unsafe.Pointer, size int) {
	t.leaves.PrefetchFrom(vals, size)
	t.stairs.Vals, t.stairs.ValSize = vals, uint64(size)
}

// Memory returns the tree as it lies: rows, leaves, and the column of values if
// there is one, which starts at byte vals (0: there is none). A copy of it is
// the same tree.
func (t *Tree[C]) Memory() (all []byte, vals int) { return t.leaves.Memory() }

// Segments returns the memory of rows, leaves and, if values have one, their
// column.
func (t *Tree[C]) Segments() [][]byte { return t.leaves.Segments() }

// Key returns the key of entry i, 0 <= i < Len.
func (t *Tree[C]) Key(i int) C { return t.leaves.Key(i) }

// Val returns the address of entry i's value in the tree.
func (t *Tree[C]) Val(i int) unsafe.Pointer { return t.leaves.Val(i) }

// CopyKeys copies the keys of the entries from lo on.
func (t *Tree[C]) CopyKeys(dst []C, lo int) { t.leaves.CopyKeys(dst, lo) }

// CopyVals copies the values in the tree from entry lo on; len(dst) is a
// multiple of their size.
func (t *Tree[C]) CopyVals(dst []byte, lo int) { t.leaves.CopyVals(dst, lo) }

// Prefetch asks for the leaves of n entries from lo on.
func (t *Tree[C]) Prefetch(lo, n int) { t.leaves.Prefetch(lo, n) }
