package implicit

import (
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (t *Tree[C]) Rank(keys []C, ranks []int) { simd.Rank(&t.Tree, keys, ranks) }

// Find sets ranks[i] to the number of the first entry with key keys[i], or -1.
func (t *Tree[C]) Find(keys []C, ranks []int) { simd.Find(&t.Tree, keys, ranks) }

// Len returns the number of entries.
func (t *Tree[C]) Len() int { return int(t.Tree.Len) }

// Seek returns the number of entries with a key below key, and reports
// whether the entry there has just that key.
func (t *Tree[C]) Seek(key C) (rank int, equal bool) { return simd.Seek(&t.Tree, key) }

// PrefetchFrom names a column outside the tree whose value Find is to
// prefetch: values that live in a Go slice. It must outlive the tree.
func (t *Tree[C]) PrefetchFrom(vals unsafe.Pointer, size int) {
	t.Vals, t.ValSize = vals, uint64(size)
}

// place returns the address of entry i's key.
func (t *Tree[C]) place(i int) unsafe.Pointer {
	leaf, at := i>>t.LeafShift, i&(t.perLeaf()-1)
	return unsafe.Add(t.leaf(leaf), at*keyBytes[C]())
}

// Key returns the key of entry i, 0 <= i < Len.
func (t *Tree[C]) Key(i int) C { return *(*C)(t.place(i)) }

// Val returns the address of entry i's value in the tree.
func (t *Tree[C]) Val(i int) unsafe.Pointer {
	if t.cfg.Leaves == Pairs {
		return unsafe.Add(t.place(i), halfLine)
	}
	return unsafe.Add(t.Vals, i*t.cfg.ValSize)
}

// Prefetch asks for the leaves of n entries from lo on, the first few of them:
// the hardware prefetches the rest by itself.
func (t *Tree[C]) Prefetch(lo, n int) {
	const few = 6
	if n > 0 {
		first, last := lo>>t.LeafShift, (lo+n-1)>>t.LeafShift
		t.Tree.Prefetch(t.Leaves+uint64(first)*lineWords, min(last-first+1, few))
	}
}

// CopyKeys copies the keys of the entries from lo on.
func (t *Tree[C]) CopyKeys(dst []C, lo int) {
	if t.cfg.Leaves == Pairs {
		copyHalves(t, dst, lo, 0)
		return
	}
	par.Copy(dst, unsafe.Slice((*C)(t.place(lo)), len(dst)), 1) // leaves are full: one array
}

// CopyVals copies the values in the tree from entry lo on; len(dst) is a
// multiple of their size.
func (t *Tree[C]) CopyVals(dst []byte, lo int) {
	if t.cfg.Leaves == Pairs {
		copyHalves(t, unsafe.Slice((*C)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/keyBytes[C]()), lo, halfLine)
		return
	}
	par.Copy(dst, unsafe.Slice((*byte)(unsafe.Add(t.Vals, lo*t.cfg.ValSize)), len(dst)), 1)
}

// manyLines is the number of lines from which on a call into assembly pays.
const manyLines = 8

// copyHalves copies keys or values of leaves of pairs, which lie offset bytes
// into each line: entry by entry to the end of the first leaf, then half lines.
func copyHalves[C simd.Code](t *Tree[C], dst []C, lo, offset int) {
	per := halfLine / keyBytes[C]()
	at := unsafe.Add(t.leaf(lo/per), offset)
	line := unsafe.Slice((*C)(at), per)
	dst = dst[copy(dst, line[lo%per:]):]
	at = unsafe.Add(at, simd.LineBytes)
	if full := len(dst) / per; full >= manyLines {
		simd.CopyHalves(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), full*halfLine), at)
		at = unsafe.Add(at, full*simd.LineBytes)
		dst = dst[full*per:]
	}
	for len(dst) >= per {
		*(*[halfLine]byte)(unsafe.Pointer(unsafe.SliceData(dst))) = *(*[halfLine]byte)(at)
		at = unsafe.Add(at, simd.LineBytes)
		dst = dst[per:]
	}
	if len(dst) > 0 { // not a line behind the last
		copy(dst, unsafe.Slice((*C)(at), len(dst)))
	}
}
