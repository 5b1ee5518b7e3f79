package pando

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/par"
)

// Buffer is memory for the slices of batches that a GPU reads and writes by
// itself. Keys and results in ordinary memory are copied by the CPU on their
// way; from and to a Buffer they travel directly, which for large batches is
// faster by a third and leaves the CPU free. It is page-locked: hold as much
// as batches need, not more. On a machine without a GPU, and in a program without
// package cuda, it is ordinary memory.
type Buffer[T any] struct {
	data []T
	dev  device.Device // nil where the memory is Go's
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
	dev, err := index.OpenGPU(0)
	if errors.Is(err, index.ErrNotLinked) || errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		b.data = make([]T, n)
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := dev.HostAlloc(n * int(t.Size()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %d values to page-lock: %w", ErrMemoryLimit, n, err), dev.Close())
	}
	par.Clear(raw)
	device.Share(raw)
	b.data, b.dev = arena.As[T](raw), dev
	return b, nil
}

// Slice returns the memory, which must not be used after Close. Slices of it are
// as good.
func (b *Buffer[T]) Slice() []T { return b.data }

// Locked reports whether a GPU reaches the memory.
func (b *Buffer[T]) Locked() bool { return b.dev != nil }

// Close gives the memory back. No batch may be under way in it. A second
// Close does nothing.
func (b *Buffer[T]) Close() error {
	data, dev := b.data, b.dev
	b.data, b.dev = nil, nil
	if dev == nil {
		return nil
	}
	raw := arena.Bytes(data)
	device.Unshare(raw)
	return errors.Join(dev.HostFree(raw), dev.Close())
}
