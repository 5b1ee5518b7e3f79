// Package text is the simplest index over strings that is right: one sorted
// block of bytes with offsets, searched by halving.
//
//	data:    │ key 0 │ key 1 │ … │ key n-1 │
//	offsets: 0, end of key 0, end of key 1, …, end of key n-1
//
// A block that is built is Go memory without pointers: the garbage collector
// does not walk it, and strings cut out of it stay good for as long as anyone
// holds them. Strings of a block that lies in a file are copied out.
package text

import (
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// Block is an immutable sorted list of strings. It is safe for concurrent
// readers.
type Block struct {
	data    []byte
	offsets []uint64
	mem     *arena.Block // where both lie; nil for Go memory
}

// Need gives the bytes that a block of these keys takes.
func Need(keys []string) int64 {
	total := int64(8 * (len(keys) + 1))
	for _, k := range keys {
		total += int64(len(k))
	}
	return total
}

// Build makes a block of keys in the given order; nil means as they are.
func Build(keys []string, order []int) *Block {
	b := &Block{
		data:    make([]byte, 0, Need(keys)-int64(8*(len(keys)+1))),
		offsets: make([]uint64, 1, len(keys)+1),
	}
	for i := range keys {
		if order != nil {
			i = order[i]
		}
		b.data = append(b.data, keys[i]...)
		b.offsets = append(b.offsets, uint64(len(b.data)))
	}
	return b
}

// Len is the number of strings.
func (b *Block) Len() int { return len(b.offsets) - 1 }

// Bytes is the memory the block takes, in a file or not.
func (b *Block) Bytes() int64 { return int64(cap(b.data) + 8*cap(b.offsets)) }

// Key gives string i.
func (b *Block) Key(i int) string {
	if b.mem != nil {
		return strings.Clone(b.view(i))
	}
	return b.view(i)
}

// view gives string i where it lies. In a file the offsets may be any numbers:
// they are cut to what there is.
func (b *Block) view(i int) string {
	hi := min(b.offsets[i+1], uint64(len(b.data)))
	lo := min(b.offsets[i], hi)
	return unsafe.String(unsafe.SliceData(b.data[lo:hi]), int(hi-lo))
}

// Copy gives a copy of string i as bytes.
func (b *Block) Copy(i int) []byte { return []byte(b.view(i)) }

// Release gives the memory of a file back; strings that are being read turn
// into zeros or nothing. Go memory is gone when nothing points to it.
func (b *Block) Release() {
	if b.mem != nil {
		b.mem.Release()
	}
}

// Released says whether Release was called on a block that lies in a file.
func (b *Block) Released() bool { return b.mem != nil && b.mem.Released() }

// Seek gives the number of strings below key, and whether the string at that
// place is key.
func (b *Block) Seek(key string) (rank int, equal bool) {
	lo, hi := 0, b.Len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if b.view(mid) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < b.Len() && b.view(lo) == key
}

// After gives the number of strings up to key.
func (b *Block) After(key string) int {
	lo, hi := 0, b.Len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if b.view(mid) <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
