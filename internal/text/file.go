package text

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// Open makes a block over memory that holds one already: offsets as numbers of
// 64 bits, and the bytes of the strings, both segments of mem. Nothing of it
// is read: whatever the bytes are, no string lies outside of data. Check says
// whether they are a sorted list.
func Open(offsets, data []byte, mem *arena.Block) *Block {
	n := len(offsets) / 8
	return &Block{
		data:    data,
		offsets: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(offsets))), n),
		mem:     mem,
	}
}

// Segments gives the memory of offsets and strings.
func (b *Block) Segments() (offsets, data []byte) {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.offsets))), 8*len(b.offsets)), b.data
}

// Check gives an error for the first string that does not end where the next
// starts, or, where they must be sorted, is above it.
func (b *Block) Check(sorted bool) error {
	if first := b.offsets[0]; first != 0 {
		return fmt.Errorf("the first string starts at byte %d", first)
	}
	for i := range b.Len() {
		if lo, hi := b.offsets[i], b.offsets[i+1]; lo > hi || hi > uint64(len(b.data)) {
			return fmt.Errorf("string %d has bytes %d to %d of %d", i, lo, hi, len(b.data))
		}
		if sorted && i > 0 && b.view(i-1) > b.view(i) {
			return fmt.Errorf("strings %d and %d are out of order", i-1, i)
		}
	}
	if last := b.offsets[b.Len()]; last != uint64(len(b.data)) {
		return fmt.Errorf("the last string ends at byte %d of %d", last, len(b.data))
	}
	return nil
}
