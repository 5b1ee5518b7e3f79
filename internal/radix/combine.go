package radix

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Operations of a batch on one key are one change, so that no reader sees a state between two of
// them: the last one that sets or deletes decides the key's new state, and the result of each
// follows from the state before the first.

// combine finds the operations of a batch that are on one key.
func (o *Ops) combine() {
	o.heads, o.next = nil, nil
	switch {
	case o.ascend():
	case len(o.Keys) <= warmKeys:
		o.combineFew()
	default:
		o.combineMany()
	}
}

// ascend reports whether keys ascend, so that no two are equal: those of an index that is loaded do.
func (o *Ops) ascend() bool {
	for i := 1; i < len(o.Keys); i++ {
		if o.Keys[i-1] >= o.Keys[i] {
			return false
		}
	}
	return true
}

var combineSeed = maphash.MakeSeed()

// combineFew is combine for a few keys. Most often no two hashes have the same bit of a small set, and that is all.
func (o *Ops) combineFew() {
	var seen [64]uint64
	twice := false
	simd.FetchStrings(o.Keys)
	for _, key := range o.Keys {
		h := maphash.String(combineSeed, key)
		at, bit := h>>6%uint64(len(seen)), uint64(1)<<(h&63)
		twice = twice || seen[at]&bit != 0
		seen[at] |= bit
	}
	if twice {
		var rows [warmKeys]int32
		for i := range o.Keys {
			rows[i] = int32(i)
		}
		o.chain(rows[:len(o.Keys)])
	}
}

// bitsEach is how many bits for each key the sets have by which combineMany finds keys that may be equal: one key
// in sixteen has its bit in common with another, though they are not.
const bitsEach = 16

// combineMany is combine for many keys. Only those whose hash has the same bit of a large set as
// another's are compared: to put all of them into a table would take a third of the time of a
// batch.
func (o *Ops) combineMany() {
	n := len(o.Keys)
	workers := max(min(o.Workers, n/leastPart), 1)
	hashes := make([]uint32, n)
	words := 1 << bits.Len(uint(n*bitsEach/64-1))
	seen, twice := make([]uint64, words), make([]uint64, words)
	place := func(h uint32) (at uint32, bit uint64) { return h >> 6 & uint32(words-1), 1 << (h & 63) }
	const piece = 16 * bucketKeys
	pieces := make([][]int32, (n+piece-1)/piece)
	par.Run(workers, len(pieces), par.Func(func(p int) {
		var lines [bucketKeys]int
		for lo := p * piece; lo < min((p+1)*piece, n); lo += bucketKeys {
			some := hashes[lo:min(lo+bucketKeys, n)]
			simd.FetchStrings(o.Keys[lo : lo+len(some)])
			for i := range some {
				some[i] = uint32(maphash.String(combineSeed, o.Keys[lo+i]) >> 32)
				at, _ := place(some[i])
				lines[i] = int(at)
			}
			simd.FetchEach(unsafe.Pointer(&seen[0]), lines[:len(some)], 8) // before atomic ones, which would wait one by one
			for _, h := range some {
				if at, bit := place(h); atomic.OrUint64(&seen[at], bit)&bit != 0 {
					atomic.OrUint64(&twice[at], bit)
				}
			}
		}
	}))
	par.Run(workers, len(pieces), par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			if at, bit := place(hashes[i]); twice[at]&bit != 0 {
				pieces[p] = append(pieces[p], int32(i))
			}
		}
	}))
	o.chain(slices.Concat(pieces...))
}

// chain puts those of some operations that are on one key into a list, in their order. All others are on
// keys of their own.
func (o *Ops) chain(rows []int32) {
	// An entry of the table has the upper half of a hash, and the number of the last operation with it,
	// counted from one. At most half of them are used.
	table := make([]uint64, 2<<bits.Len(uint(len(rows))))
	mask := uint64(len(table) - 1)
	again := 0
	for _, row := range rows {
		h := maphash.String(combineSeed, o.Keys[row])
		at := h & mask
		for ; table[at] != 0; at = (at + 1) & mask {
			before := int32(uint32(table[at])) - 1
			if table[at]>>32 == h>>32 && o.Keys[before] == o.Keys[row] {
				if o.next == nil {
					o.next = make([]int32, len(o.Keys))
				}
				o.next[before] = row
				again++
				break
			}
		}
		table[at] = h>>32<<32 | uint64(row+1)
	}
	if again > 0 {
		o.lead(again)
	}
}

// lead lists the first operation on each key, where again operations are on a key that has an
// earlier one.
func (o *Ops) lead(again int) {
	second := make([]bool, len(o.Keys))
	for _, row := range o.next {
		second[row] = row != 0
	}
	o.heads = make([]int32, 0, len(o.Keys)-again)
	for i := range second {
		if !second[i] {
			o.heads = append(o.heads, int32(i))
		}
	}
}

// changes returns the number of keys that operations are on.
func (o *Ops) changes() int {
	if o.heads != nil {
		return len(o.heads)
	}
	return len(o.Keys)
}

// head returns the first operation on a key, of those that operations are on.
func (o *Ops) head(i int) int32 {
	if o.heads != nil {
		return o.heads[i]
	}
	return int32(i)
}

// after returns the next operation on the same key; 0 if there is none.
func (o *Ops) after(row int32) int32 {
	if o.next == nil {
		return 0
	}
	return o.next[row]
}

// whole sets a change to the combined effect of the operations on a key, from head
// on.
func (o *Ops) whole(c *change, head int32) {
	c.key = o.Keys[head]
	for row, more := head, true; more; more = row != 0 {
		switch o.kind(int(row)) {
		case op.Set:
			c.kind, c.val = op.Set, o.Vals[row]
		case op.Delete:
			c.kind, c.val = op.Delete, 0
		}
		row = o.after(row)
	}
}

// report sets the results of the operations on a key, from head on, where old and had are its
// state before the first of them.
func (o *Ops) report(head int32, old uint64, had bool) {
	for row, more := head, true; more; more = row != 0 {
		i, kind := int(row), o.kind(int(row))
		if o.Found != nil {
			o.Found[i] = had
		}
		if o.Old != nil {
			o.Old[i] = old
		}
		switch {
		case kind == op.Get && had && o.Seen != nil:
			o.Seen(i, old)
		case kind == op.Set:
			old, had = o.Vals[i], true
		case kind == op.Delete:
			old, had = 0, false
		}
		row = o.after(row)
	}
}
