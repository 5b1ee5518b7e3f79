// Package strlist is byte strings one behind the other, with offsets: the simplest
// index over strings that is right (Tree), where they are sorted and searched by
// halving, and the values of a file that a codec has written.
//
//	data:    │ key 0 │ key 1 │ … │ key n-1 │
//	offsets: 0, end of key 0, end of key 1, …, end of key n-1
//
// A list that is built is Go memory without pointers: the garbage collector
// does not walk it, and strings cut out of it stay good for as long as anyone
// holds them. Strings of a list that lies in a file are copied out.
package strlist

import (
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// List is an immutable list of strings. It is safe for concurrent
// readers.
type List struct {
	data    []byte
	offsets []uint64
	mem     *arena.Block // where both lie; nil for Go memory
}

// Need returns the bytes that a list of these keys takes.
func Need(keys []string) int64 {
	total := int64(8 * (len(keys) + 1))
	for _, k := range keys {
		total += int64(len(k))
	}
	return total
}

// Build makes a list of keys in the given order; nil means as they are.
func Build(keys []string, order []int) *List {
	l := &List{
		data:    make([]byte, 0, Need(keys)-int64(8*(len(keys)+1))),
		offsets: make([]uint64, 1, len(keys)+1),
	}
	for i := range keys {
		if order != nil {
			i = order[i]
		}
		l.data = append(l.data, keys[i]...)
		l.offsets = append(l.offsets, uint64(len(l.data)))
	}
	return l
}

// Len returns the number of strings.
func (l *List) Len() int { return len(l.offsets) - 1 }

// Bytes returns the memory the list takes, in a file or not.
func (l *List) Bytes() int64 { return int64(cap(l.data) + 8*cap(l.offsets)) }

// Key returns string i.
func (l *List) Key(i int) string {
	if l.mem != nil {
		return strings.Clone(l.View(i))
	}
	return l.View(i)
}

// View returns string i where it lies. In a file the offsets may be any numbers:
// they are cut to what there is.
func (l *List) View(i int) string {
	lo := l.offsets[i] // first: where the list is released meanwhile it ends at 0, and has nothing
	hi := min(l.offsets[i+1], uint64(len(l.data)))
	lo = min(lo, hi)
	return unsafe.String(unsafe.SliceData(l.data[lo:hi]), int(hi-lo))
}

// Copy returns a copy of string i as bytes.
func (l *List) Copy(i int) []byte { return []byte(l.View(i)) }

// Release gives the memory of a file back; strings that are being read turn
// into zeros or nothing. Go memory is gone when nothing points to it.
func (l *List) Release() {
	if l.mem != nil {
		l.mem.Release()
	}
}

// Released reports whether Release was called on a list that lies in a file.
func (l *List) Released() bool { return l.mem != nil && l.mem.Released() }

// Seek returns the number of strings below key, and reports whether the
// string there is key.
func (l *List) Seek(key string) (rank int, equal bool) {
	lo, hi := 0, l.Len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if l.View(mid) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < l.Len() && l.View(lo) == key
}

// After returns the number of strings up to key.
func (l *List) After(key string) int {
	lo, hi := 0, l.Len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if l.View(mid) <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
