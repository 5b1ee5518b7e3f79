package pando

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
)

// Buffer is memory for the slices of batches that a GPU reads and writes by
// itself. Keys and results in ordinary memory are copied by the CPU on their
// way; from and to a Buffer they travel directly, which for large batches is
// faster by a third and leaves the CPU free. It is page-locked: hold as much
// as batches need, not more. On a machine without a GPU, and in a program without
// package cuda, it is ordinary memory.
type Buffer[T any] struct {
	data   []T
	locked *index.Locked // nil where the memory is Go's
}

// mostBytes is the memory that a program can address on 64-bit machines, which
// leave half of 48 bits to it.
const mostBytes = 1 << 47

// NewBuffer takes memory for n values, all zero. T must not hold pointers. The
// memory is not the garbage collector's: it is there until Close.
func NewBuffer[T any](n int) (*Buffer[T], error) {
	t := reflect.TypeFor[T]()
	if n < 0 || !index.PointerFree(t) || t.Size() == 0 {
		panic(fmt.Sprintf("pando: NewBuffer: cannot take %d values of %v; they must have a size and no pointers", n, t))
	}
	b := new(Buffer[T])
	if n == 0 {
		return b, nil
	}
	if uint64(n) > mostBytes/uint64(t.Size()) {
		return nil, fmt.Errorf("%w: %d values of %d bytes are more than there are addresses", ErrMemoryLimit, n, t.Size())
	}
	locked, err := index.Lock(n * int(t.Size()))
	if err != nil {
		return nil, err
	}
	if b.locked = locked; locked == nil {
		b.data = make([]T, n)
		return b, nil
	}
	b.data = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(locked.Bytes))), n)
	return b, nil
}

// Slice returns the memory, which must not be used after Close. Slices of it are
// as good.
func (b *Buffer[T]) Slice() []T { return b.data }

// Locked reports whether a GPU reaches the memory.
func (b *Buffer[T]) Locked() bool { return b.locked != nil }

// Close gives the memory back. No batch may be under way in it. A second
// Close does nothing.
func (b *Buffer[T]) Close() error {
	locked := b.locked
	b.data, b.locked = nil, nil
	if locked == nil {
		return nil
	}
	return locked.Free()
}
