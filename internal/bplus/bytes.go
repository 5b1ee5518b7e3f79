// Package bplus is the regular B+-tree of the HB+-tree paper (section 4.1,
// figure 2 (c) and (d)) with the side links of a B-link tree, so that it can be
// read and changed by many goroutines at once. It maps codes of 32 or 64 bits to
// values of the same width.
//
// A leaf is two pieces of memory with one number. The pilot finds the line of
// the block, the block holds the pairs:
//
//	pilot of leaf x          64-bit codes                     32-bit codes
//	  0    index line        7 separators                     3 separators, then the maximum
//	  56   word              locked, sealed, dead, number of entries, sequence number
//	  64   info              see type info
//	  128  separators        64: the greatest key that may be in each line; the last is the
//	                         leaf's high key
//	block of leaf x
//	  0    line 0            k0 … k3 | v0 … v3                k0 … k7 | v0 … v7
//	  64   line 1            …
//	  4032 line 63
//
// Line j holds keys in (separator j-1, separator j], line 0 those above the
// leaf's low key. A line with m entries has them in order in its first m places;
// the other places repeat the last of them. So the first place that equals a key
// is its entry, no key is reserved, and a line needs no counter. A line without
// entries holds a key that cannot be in it.
//
//	upper node y
//	  0    index line        as in a pilot
//	  64   info              number of children
//	  128  separators        64: the greatest key that may be below each child
//	  …    references        64 of 32 bits: upper nodes, or leaves
//	  …    counts            64 of 64 bits: entries below each child, as of the last count
//
// Unused separators are the maximum, and their references repeat the last.
package bplus

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
)

// Code is a key or value of the width that a tree holds.
type Code interface{ uint32 | uint64 }

const (
	lines   = simd.RegularFanout // of a leaf's block
	fanout  = simd.RegularFanout // children of an upper node
	nothing = 1<<32 - 1          // a reference to no node
)

// width returns the bytes of a code.
func width[C Code]() int { return int(unsafe.Sizeof(C(0))) }

// linePairs returns the number of pairs in a line: 4 of 64 bits, 8 of 32.
func linePairs[C Code]() int { return simd.LineBytes / 2 / width[C]() }

// capacity returns the number of pairs in a leaf: 256 of 64 bits, 512 of 32.
func capacity[C Code]() int { return lines * linePairs[C]() }

// info is the second line of a pilot. It is read and changed like the leaf's
// entries: under its word.
type info struct {
	epoch   uint64 // in which the leaf was last changed; see partly
	born    uint64 // in which it was made: later snapshots may refer to it
	low     uint64 // all keys are above; meaningless in the first leaf
	owner   uint64 // number of the tree
	next    uint32 // leaf to the right, or nothing
	first   uint32 // 1 in the first leaf, which has no low key
	counted uint32 // entries that the counts above know of
	dirty   uint32 // 1 if that may be another number than there are
	full    uint64 // bit j: line j has no room
	missing uint64 // bit j: line j has to be kept for a snapshot before it is changed
}

// partly is added to the epoch of a leaf some lines of which are missing. The
// sum equals no epoch, so a writer that changes more than some lines touches
// the leaf first.
const partly = 1 << 63

// changed returns the epoch in which a leaf was last changed.
func (in *info) changed() uint64 { return in.epoch &^ partly }

// set sets the epoch in which a leaf was changed, and which lines are missing.
func (in *info) set(epoch, missing uint64) {
	if in.epoch, in.missing = epoch, missing; missing != 0 {
		in.epoch |= partly
	}
}

// leaf is where a leaf lies: in the pools, or a copy of it in scratch memory.
type leaf[C Code] struct{ pilot, block unsafe.Pointer }

func (l leaf[C]) word() *uint64           { return simd.RegularWord(l.pilot) }
func (l leaf[C]) seps() *[lines]C         { return simd.RegularSeps[C](l.pilot) }
func (l leaf[C]) info() *info             { return (*info)(unsafe.Add(l.pilot, simd.LineBytes)) }
func (l leaf[C]) high() C                 { return l.seps()[lines-1] }
func (l leaf[C]) loadWord() uint64        { return atomic.LoadUint64(l.word()) }
func (l leaf[C]) at(j int) unsafe.Pointer { return unsafe.Add(l.block, j*simd.LineBytes) }

// sepLine returns the address of a line of separators.
func (l leaf[C]) sepLine(i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(l.seps()), i*simd.LineBytes)
}

// line returns line j: keys, then as many values.
func (l leaf[C]) line(j int) []C { return unsafe.Slice((*C)(l.at(j)), 2*linePairs[C]()) }

// setIndex sets the index line of a node from its separators.
func setIndex[C Code](node unsafe.Pointer) {
	perLine := simd.LineBytes / width[C]()
	index, seps := simd.RegularIndex[C](node), simd.RegularSeps[C](node)
	for i := range index {
		index[i] = ^C(0)
		if at := (i+1)*perLine - 1; at < lines-1 {
			index[i] = seps[at]
		}
	}
}

// setIndexOf copies those of separators [from, to) to the index line of a node
// that belong there, and reports whether there are any.
func setIndexOf[C Code](node unsafe.Pointer, from, to int) (any bool) {
	perLine := simd.LineBytes / width[C]()
	index, seps := simd.RegularIndex[C](node), simd.RegularSeps[C](node)
	for at := from | (perLine - 1); at < min(to, lines-1); at += perLine {
		index[at/perLine], any = seps[at], true
	}
	return any
}

// upper is where an upper node lies.
type upper[C Code] struct{ node unsafe.Pointer }

// upperInfo is the second line of an upper node.
type upperInfo struct {
	children uint32
}

func (u upper[C]) seps() *[fanout]C      { return simd.RegularSeps[C](u.node) }
func (u upper[C]) refs() *[fanout]uint32 { return simd.RegularRefs[C](u.node) }
func (u upper[C]) info() *upperInfo      { return (*upperInfo)(unsafe.Add(u.node, simd.LineBytes)) }
func (u upper[C]) counts() *[fanout]int64 {
	return (*[fanout]int64)(unsafe.Add(u.node, simd.RegularUpper[C]()-8*fanout))
}

// The memory of all trees of a width. A search that is late may come to an upper
// node that is one of another level by now, and take a leaf's number for an upper
// node's or the other way round: so both must be readable.
var (
	leaves32, uppers32 = arena.InStep(arena.NewPool(512, simd.RegularBlock, simd.RegularPilot[uint32]()), arena.NewPool(64, simd.RegularUpper[uint32]()))
	leaves64, uppers64 = arena.InStep(arena.NewPool(512, simd.RegularBlock, simd.RegularPilot[uint64]()), arena.NewPool(64, simd.RegularUpper[uint64]()))
)

func pools[C Code]() (leaves, uppers *arena.Pool) {
	if width[C]() == 4 {
		return leaves32, uppers32
	}
	return leaves64, uppers64
}

// Taken returns the number of chunks of nodes that trees have, for tests.
func Taken() (n int) {
	for _, p := range []*arena.Pool{leaves32, leaves64, uppers32, uppers64, keeps} {
		n += p.Taken()
	}
	return n
}
