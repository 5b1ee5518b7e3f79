package radix

import (
	"hash/maphash"
	"math/bits"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Operations of a batch on one key are one change, so that nobody sees what is between two of
// them: the last one that sets or deletes decides what the key becomes, and what each of them finds
// follows from what was there before the first.

// combine finds the operations of a batch that are on one key.
func (o *Ops) combine() {
	o.heads, o.next = nil, nil
	n := len(o.Keys)
	if o.ascend() {
		return
	}
	if n <= warmKeys {
		var table [2 * warmKeys]uint64
		var rows [warmKeys]int32
		var hashes [warmKeys]uint64
		for i, key := range o.Keys {
			rows[i], hashes[i] = int32(i), maphash.String(combineSeed, key)
		}
		if again := o.chain(table[:], rows[:n], hashes[:n]); again > 0 {
			o.lead(again)
		}
		return
	}
	o.combineParts()
}

var combineSeed = maphash.MakeSeed()

// ascend reports whether keys ascend, so that no two are equal: those of an index that is loaded do.
func (o *Ops) ascend() bool {
	for i := 1; i < len(o.Keys); i++ {
		if o.Keys[i-1] >= o.Keys[i] {
			return false
		}
	}
	return true
}

const (
	combinePart  = 2048 // keys that are looked at together, about: their table is in a core's cache
	combineParts = 1 << 10
)

// combineParts is combine for many keys: they are parted by their hashes, and workers take parts.
func (o *Ops) combineParts() {
	n := len(o.Keys)
	workers := max(min(o.Workers, n/leastPart), 1)
	parts := min((n+combinePart-1)/combinePart, combineParts)
	hashes := make([]uint64, n)
	rows, ends := parted(workers, n, parts, func(lo, hi int, owner []uint16) {
		for at := lo; at < hi; at += bucketKeys {
			simd.FetchStrings(o.Keys[at:min(at+bucketKeys, hi)])
			for i := at; i < min(at+bucketKeys, hi); i++ {
				hashes[i] = maphash.String(combineSeed, o.Keys[i])
				part, _ := bits.Mul64(hashes[i], uint64(parts))
				owner[i] = uint16(part)
			}
		}
	})
	// Parts have no operation in common, so that workers may share the list.
	next := make([]int32, n)
	o.next = next
	again := make([]int, parts)
	par.Run(workers, parts, par.Func(func(p int) {
		from := 0
		if p > 0 {
			from = ends[p-1]
		}
		part := rows[from:ends[p]]
		if len(part) < 2 {
			return
		}
		own := make([]uint64, len(part))
		for i, row := range part {
			own[i] = hashes[row]
		}
		again[p] = o.chain(make([]uint64, 2<<bits.Len(uint(len(part)-1))), part, own)
	}))
	sum := 0
	for _, k := range again {
		sum += k
	}
	if o.next = nil; sum > 0 {
		o.next = next
		o.lead(sum)
	}
}

// chain puts operations on one key into a list, in their order, and returns how many have one
// before them. Their hashes are given, and a table without entries, of a power of two of them
// and at least twice as many: an entry has the upper half of a hash, and the number of the last operation
// with it, counted from one.
func (o *Ops) chain(table []uint64, rows []int32, hashes []uint64) (again int) {
	mask := uint64(len(table) - 1)
	for i, row := range rows {
		at := hashes[i] & mask
		for ; table[at] != 0; at = (at + 1) & mask {
			before := int32(uint32(table[at])) - 1
			if table[at]>>32 == hashes[i]>>32 && o.Keys[before] == o.Keys[row] {
				if o.next == nil {
					o.next = make([]int32, len(o.Keys))
				}
				o.next[before] = row
				again++
				break
			}
		}
		table[at] = hashes[i]>>32<<32 | uint64(row+1)
	}
	return again
}

// lead lists the first operation on each key, where so many are on a key that has one before.
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

// whole returns what the operations from one on that are on a key come to.
func (o *Ops) whole(head int32) change {
	c := change{key: o.Keys[head]}
	for row, more := head, true; more; more = row != 0 {
		switch o.kind(int(row)) {
		case Set:
			c.kind, c.val = Set, o.Vals[row]
		case Delete:
			c.kind, c.val = Delete, 0
		}
		row = o.after(row)
	}
	return c
}

// report says what each of the operations from one on that are on a key has found, where that was
// there before the first of them.
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
		case kind == Get && had && o.Seen != nil:
			o.Seen(i, old)
		case kind == Set:
			old, had = o.Vals[i], true
		case kind == Delete:
			old, had = 0, false
		}
		row = o.after(row)
	}
}
