// Package partial is about partial keys: the few bits of strings that tell them
// apart. It chooses those bits for a set of strings, and sorts strings by them.
package partial

import (
	"math/bits"
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Chooser picks the bits of sorted keys that make their partial keys.
//
// With a granule, the paper's G, they are those in which any two keys differ,
// in units of G bits; G = 32 takes the bits that follow the common prefix, as
// prefix compression does. Without, they are only those that are the first in
// which a key differs from the one before it: of any two keys, the first bit in
// which they differ is among these, so they are enough to keep all keys in
// order and apart. A partial key of 32 bits then reaches much further
// (experiment key-entropy).
type Chooser struct {
	Bits    int // of a partial key
	Granule int // the paper's G; 0 for first differing bits only
	Workers int // goroutines; 0 for one per core
}

// reach is the windows behind the common prefix that are looked at.
const reach = 32

// masks are bits of keys, window by window from some byte on.
type masks [reach]uint64

// Program returns how to take partial keys of n sorted strings. All of them share
// what the first and the last have in common, so it begins there. Strings that
// are all equal have none.
func (c Chooser) Program(n int, key func(i int) string) (p simd.Program) {
	if n < 2 {
		return p
	}
	from := simd.CommonPrefix(key(0), key(n-1))
	if from > simd.MaxWindow {
		return p
	}
	return c.assemble(c.look(n, key, from), from)
}

// assemble makes a program of the first of the bits that count.
func (c Chooser) assemble(all masks, from int) (p simd.Program) {
	w, left := 0, c.Bits
	for i, m := range all {
		at := from + 8*i
		if m = c.cut(m, left); m == 0 {
			continue
		}
		if w == len(p.Mask) || at > simd.MaxWindow {
			break
		}
		p.At[w], p.Mask[w] = uint16(at), m
		left -= bits.OnesCount64(m)
		w++
	}
	return p
}

// look returns the bits that count, on all workers if there are many keys.
func (c Chooser) look(n int, key func(i int) string, from int) (all masks) {
	const piece = 32 << 10
	if n <= piece {
		c.lookAt(1, n, key, from, &all)
		return all
	}
	var shared [reach]atomic.Uint64
	par.Run(par.Workers(c.Workers), (n+piece-1)/piece, par.Func(func(p int) {
		var some masks
		c.lookAt(max(p*piece, 1), min((p+1)*piece, n), key, from, &some)
		for i, m := range some {
			shared[i].Or(m)
		}
	}))
	for i := range shared {
		all[i] = shared[i].Load()
	}
	return all
}

// lookAt adds the bits of keys [lo, hi), each beside the one before it.
func (c Chooser) lookAt(lo, hi int, key func(i int) string, from int, all *masks) {
	before := key(lo - 1)
	for i := lo; i < hi; i++ {
		k := key(i)
		if c.Granule == 0 {
			firstBit(before, k, from, all)
		} else {
			allBits(before, k, from, all)
		}
		before = k
	}
}

// firstBit adds the first bit in which two keys differ.
func firstBit(a, b string, from int, all *masks) {
	for w := range all {
		at := from + 8*w
		if x := simd.StringWord(a, at) ^ simd.StringWord(b, at); x != 0 {
			all[w] |= 1 << (63 - bits.LeadingZeros64(x))
			return
		}
		if at >= len(a) && at >= len(b) {
			return
		}
	}
}

// allBits adds all bits in which two keys differ.
func allBits(a, b string, from int, all *masks) {
	for w := range all {
		at := from + 8*w
		if at >= len(a) && at >= len(b) {
			return
		}
		all[w] |= simd.StringWord(a, at) ^ simd.StringWord(b, at)
	}
}

// cut rounds bits to granules and keeps the first of them.
func (c Chooser) cut(m uint64, left int) (mask uint64) {
	g := max(c.Granule, 1)
	unit := uint64(1)<<g - 1
	for shift := 64 - g; shift >= 0 && left >= g; shift -= g {
		if m>>shift&unit != 0 {
			mask |= unit << shift
			left -= g
		}
	}
	return mask
}
