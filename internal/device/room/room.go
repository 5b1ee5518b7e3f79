// Package room is device memory as mutable trees take it: memory that grows in
// place, lists of free slots, and memory for the time of a batch.
package room

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
)

// fixed is memory of one size, for devices whose memory cannot grow.
type fixed struct {
	dev  device.Device
	at   device.Ptr
	room int64
}

func (f *fixed) Base() device.Ptr { return f.at }
func (f *fixed) Len() int64       { return f.room }
func (f *fixed) Free() error      { return f.dev.Free(f.at) }

func (f *fixed) Grow(bytes int64) error {
	if bytes > f.room {
		return fmt.Errorf("%w: %d bytes asked for of %d", device.ErrOutOfMemory, bytes, f.room)
	}
	return nil
}

// Reserve returns memory that can grow up to the given bytes. Where a device's
// memory cannot grow, it is a part of that, taken at once.
func Reserve(dev device.Device, bytes, part int64) (device.Range, error) {
	r, err := dev.Reserve(bytes)
	if !errors.Is(err, device.ErrUnsupported) {
		return r, err
	}
	at, err := dev.Alloc(int(part))
	if err != nil {
		return nil, err
	}
	return &fixed{dev, at, part}, nil
}

// List is numbers (u32) in device memory, of slots that are free. The host knows how
// many there are.
type List struct {
	At   device.Ptr
	N    int
	room int
}

// Grow makes room for the given numbers, and for half as many again, up to most.
// An error leaves the list as it was.
func (l *List) Grow(dev device.Device, numbers, most int) error {
	if numbers <= l.room {
		return nil
	}
	numbers = max(numbers, min(numbers+numbers/2, most))
	at, err := dev.Alloc(4 * numbers)
	if err != nil {
		return err
	}
	old := l.At
	if l.N > 0 {
		if err := copyNow(dev, at, old, 4*l.N); err != nil {
			return errors.Join(err, dev.Free(at))
		}
	}
	l.At, l.room = at, numbers
	if old == 0 {
		return nil
	}
	return dev.Free(old)
}

// copyNow copies device memory, and waits for it.
func copyNow(dev device.Device, dst, src device.Ptr, bytes int) (err error) {
	st, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := st.CopyDevice(dst, src, bytes); err != nil {
		return err
	}
	return st.Synchronize()
}

// Give queues a copy of n numbers of device memory to the end of the list, which has
// room for them.
func (l *List) Give(st device.Stream, from device.Ptr, n int) error {
	if n == 0 {
		return nil
	}
	err := st.CopyDevice(l.At+device.Ptr(4*l.N), from, 4*n)
	if err == nil {
		l.N += n
	}
	return err
}

// Free gives its memory back.
func (l *List) Free(dev device.Device) error {
	if l.At == 0 {
		return nil
	}
	return dev.Free(l.At)
}

// Work is scratch memory on a device while a batch runs.
type Work struct {
	At   device.Ptr
	Used int // bytes that are taken
	dev  device.Device
	room int
}

// Ensure makes at least the given bytes available, and all of them unused. Work
// that is queued in the stream may need the old ones, which hold lists of free
// slots.
func (w *Work) Ensure(dev device.Device, st device.Stream, bytes int) error {
	w.dev, w.Used = dev, 0
	if bytes <= w.room {
		return nil
	}
	if w.At != 0 {
		if err := st.Synchronize(); err != nil {
			return err
		}
		if err := dev.Free(w.At); err != nil {
			return err
		}
		w.At, w.room = 0, 0
	}
	at, room, err := device.AllocMore(dev, bytes)
	if err == nil {
		w.At, w.room = at, room
	}
	return err
}

// Words takes memory for n numbers of 32 bits.
func (w *Work) Words(n int) device.Ptr { return w.Bytes(4 * n) }

// Bytes takes memory.
func (w *Work) Bytes(n int) device.Ptr {
	at := w.At + device.Ptr(w.Used)
	if w.Used += device.Aligned(n); w.Used > w.room {
		panic("room: a batch takes more memory than was thought") // a mistake in what Ensure was asked for
	}
	return at
}

// Free gives its memory back.
func (w *Work) Free() error {
	if w.At == 0 {
		return nil
	}
	return w.dev.Free(w.At)
}
