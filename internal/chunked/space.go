package chunked

import (
	"errors"
	"math"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// space is slots of one size in device memory. Free ones are in a list on the
// device; the host knows how many there are, and which were never used.
type space struct {
	dev      device.Device
	memory   device.Range
	budget   *budget
	base     device.Ptr
	slot     int // bytes of a slot
	room     int // slots that there is memory for
	most     int // slots that there may be
	next     int // the first that was never used
	list     device.Ptr
	listRoom int
	free     int // length of the list
}

// open prepares slots, of which there is none yet, within a budget. share is the
// part of it, in tenths, that they take at once where memory cannot grow.
func (s *space) open(dev device.Device, slot int, b *budget, share int64) (err error) {
	s.dev, s.slot, s.budget = dev, slot, b
	s.most = int(min(b.left/int64(slot), math.MaxUint32, math.MaxInt))
	s.memory, err = reserve(dev, int64(s.most)*int64(slot), b.left*share/10)
	if err == nil {
		s.base = s.memory.Base()
	}
	return err
}

// bytes returns the memory of slots in use.
func (s *space) bytes() int64 { return int64(s.next-s.free) * int64(s.slot) }

// slots returns where new ones go.
func (s *space) slots() *kernel.Slots {
	return &kernel.Slots{Free: s.list, Count: uint32(s.free), Next: uint32(s.next)}
}

// reserve makes sure that n slots can be taken. An error leaves everything as it
// was.
func (s *space) reserve(n int) error {
	need := s.next + max(0, n-s.free)
	if need <= s.room {
		return nil
	}
	bytes := int64(need-s.room) * int64(s.slot)
	if need > s.most || bytes > s.budget.left {
		return ErrLimit
	}
	if err := s.growList(need); err != nil {
		return err
	}
	if err := s.memory.Grow(int64(need) * int64(s.slot)); err != nil {
		return err
	}
	s.room = need
	s.budget.left -= bytes
	return nil
}

// growList makes room for as many free slots as there can be.
func (s *space) growList(slots int) error {
	if slots <= s.listRoom {
		return nil
	}
	slots = min(slots+slots/2, s.most)
	list, err := s.dev.Alloc(4 * slots)
	if err != nil {
		return err
	}
	old := s.list
	if s.free > 0 {
		if err := copyNow(s.dev, list, old, 4*s.free); err != nil {
			return errors.Join(err, s.dev.Free(list))
		}
	}
	s.list, s.listRoom = list, slots
	if old == 0 {
		return nil
	}
	return s.dev.Free(old)
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

// took says that n slots were taken: free ones first.
func (s *space) took(n int) {
	fromList := min(n, s.free)
	s.free -= fromList
	s.next += n - fromList
}

// give adds n slots, which are listed in device memory, to the free ones.
func (s *space) give(st device.Stream, list device.Ptr, n int) error {
	if n == 0 {
		return nil
	}
	err := st.CopyDevice(s.list+device.Ptr(4*s.free), list, 4*n)
	if err == nil {
		s.free += n
	}
	return err
}

func (s *space) close() (err error) {
	if s.list != 0 {
		err = s.dev.Free(s.list)
	}
	if s.memory != nil {
		err = errors.Join(err, s.memory.Free())
	}
	return err
}

// budget is the memory that leaves and chunks may take together.
type budget struct{ left int64 }

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
		return ErrLimit
	}
	return nil
}

// reserve returns memory for at most so many bytes. Where a device's memory
// cannot grow, it is a part of that, taken at once.
func reserve(dev device.Device, bytes, part int64) (device.Range, error) {
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

// work is device memory for what is needed while a batch runs.
type work struct {
	dev  device.Device
	at   device.Ptr
	room int
	used int
}

// ensure makes at least so many bytes available, and all of them unused. What the
// stream still has to do may need the old ones: lists of what is free.
func (w *work) ensure(dev device.Device, st device.Stream, bytes int) error {
	w.dev, w.used = dev, 0
	if bytes <= w.room {
		return nil
	}
	if w.at != 0 {
		if err := st.Synchronize(); err != nil {
			return err
		}
		if err := dev.Free(w.at); err != nil {
			return err
		}
		w.at, w.room = 0, 0
	}
	at, room, err := device.AllocMore(dev, bytes)
	if err == nil {
		w.at, w.room = at, room
	}
	return err
}

// words takes memory for n numbers of 32 bits.
func (w *work) words(n int) device.Ptr { return w.bytes(4 * n) }

func (w *work) bytes(n int) device.Ptr {
	at := w.at + device.Ptr(w.used)
	if w.used += device.Aligned(n); w.used > w.room {
		panic("chunked: a batch takes more memory than was thought") // a mistake in workBytes
	}
	return at
}

func (w *work) close() error {
	if w.at == 0 {
		return nil
	}
	return w.dev.Free(w.at)
}
