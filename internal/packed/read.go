package packed

import (
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// batchKeys is how many queries go through the top tree, then through the
// pages: their state stays in the first-level cache.
const batchKeys = 1024

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (t *Tree[C]) Rank(keys []C, ranks []int) {
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		t.top.Rank(keys[:n], ranks[:n])
		simd.PackedRank(&t.pages, keys[:n], ranks[:n])
		keys, ranks = keys[n:], ranks[n:]
	}
}

// Find sets ranks[i] to the number of the first entry with key keys[i], or -1.
func (t *Tree[C]) Find(keys []C, ranks []int) {
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		t.top.Rank(keys[:n], ranks[:n])
		simd.PackedFind(&t.pages, keys[:n], ranks[:n])
		keys, ranks = keys[n:], ranks[n:]
	}
}

// Seek returns the number of entries with a key below key, and reports
// whether the entry there has just that key.
func (t *Tree[C]) Seek(key C) (rank int, equal bool) {
	page, _ := t.top.Seek(key)
	return simd.PackedSeek(&t.pages, page, key)
}

// PrefetchFrom names a column outside the tree whose value Find is to
// prefetch: values that live in a Go slice. It must outlive the tree.
func (t *Tree[C]) PrefetchFrom(vals unsafe.Pointer, size int) {
	t.pages.Vals, t.pages.ValSize = vals, uint64(size)
}

// Len returns the number of entries.
func (t *Tree[C]) Len() int { return t.length }

// Key returns the key of entry i, 0 <= i < Len.
func (t *Tree[C]) Key(i int) C { return simd.PackedKey[C](&t.pages, i) }

// Val returns the address of entry i's value in the tree.
func (t *Tree[C]) Val(i int) unsafe.Pointer { return unsafe.Add(t.pages.Vals, i*t.cfg.ValSize) }

// Prefetch asks for the keys of n entries from lo on, the first few of them:
// the hardware prefetches the rest by itself.
func (t *Tree[C]) Prefetch(lo, n int) {
	const few = 6
	if n > 0 {
		at, width := simd.PackedAt[C](&t.pages, lo)
		simd.PrefetchAt(at, min(1+n*int(width)/8/simd.LineBytes, few))
	}
}

// CopyKeys copies the keys of the entries from lo on.
func (t *Tree[C]) CopyKeys(dst []C, lo int) {
	const group = simd.PackedGroup
	var part [group]C
	if skip := lo % group; skip > 0 && len(dst) > 0 {
		simd.Unpack(&t.pages, part[:], lo-skip)
		n := copy(dst, part[skip:])
		dst, lo = dst[n:], lo+n
	}
	for len(dst) >= group {
		n := min(simd.PackedPage-lo%simd.PackedPage, len(dst)/group*group)
		simd.Unpack(&t.pages, dst[:n], lo)
		dst, lo = dst[n:], lo+n
	}
	if len(dst) > 0 {
		simd.Unpack(&t.pages, part[:], lo)
		copy(dst, part[:])
	}
}

// CopyVals copies the values in the tree from entry lo on; len(dst) is a
// multiple of their size.
func (t *Tree[C]) CopyVals(dst []byte, lo int) {
	par.Copy(dst, unsafe.Slice((*byte)(t.Val(lo)), len(dst)), 1)
}
