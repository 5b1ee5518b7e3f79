package strlist

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// Open makes a list over memory that holds one already: offsets as numbers of
// 64 bits, and the bytes of the strings, both segments of mem. Nothing of it is
// read: even if the bytes are damaged, no string lies outside of data. Check
// reports whether they are a sorted list.
func Open(offsets, data []byte, mem *arena.Block) *List {
	n := len(offsets) / 8
	return &List{
		data:    data,
		offsets: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(offsets))), n),
		mem:     mem,
	}
}

// Segments returns the memory of offsets and strings.
func (l *List) Segments() (offsets, data []byte) {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(l.offsets))), 8*len(l.offsets)), l.data
}

// Check returns an error for the first string that does not end where the next
// starts, or, where they must be sorted, is above it.
func (l *List) Check(sorted bool) error {
	if first := l.offsets[0]; first != 0 {
		return fmt.Errorf("the first string starts at byte %d", first)
	}
	for i := range l.Len() {
		if lo, hi := l.offsets[i], l.offsets[i+1]; lo > hi || hi > uint64(len(l.data)) {
			return fmt.Errorf("string %d has bytes %d to %d of %d", i, lo, hi, len(l.data))
		}
		if sorted && i > 0 && l.View(i-1) > l.View(i) {
			return fmt.Errorf("strings %d and %d are out of order", i-1, i)
		}
	}
	if last := l.offsets[l.Len()]; last != uint64(len(l.data)) {
		return fmt.Errorf("the last string ends at byte %d of %d", last, len(l.data))
	}
	return nil
}
