package chunked

import (
	"errors"
	"math"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/room"
	"github.com/pando-index/pando/internal/op"
)

// space is slots of one size in device memory. Free ones are in a list on the
// device; the host knows how many there are, and which were never used.
type space struct {
	dev    device.Device
	memory device.Range
	budget *budget
	base   device.Ptr
	slot   int       // bytes of a slot
	room   int       // slots that there is memory for
	most   int       // slots that there may be
	next   int       // the first that was never used
	list   room.List // of those that are free
}

// open prepares slots, of which there is none yet, within a budget. share is the
// part of it, in tenths, that they take at once where memory cannot grow.
func (s *space) open(dev device.Device, slot int, b *budget, share int64) (err error) {
	s.dev, s.slot, s.budget = dev, slot, b
	s.most = int(min(b.left/int64(slot), math.MaxUint32, math.MaxInt))
	s.memory, err = room.Reserve(dev, int64(s.most)*int64(slot), b.left*share/10)
	if err == nil {
		s.base = s.memory.Base()
	}
	return err
}

// bytes returns the memory of slots in use.
func (s *space) bytes() int64 { return int64(s.next-s.list.N) * int64(s.slot) }

// slots returns where new ones go.
func (s *space) slots() *kernel.Slots {
	return &kernel.Slots{Free: s.list.At, Count: uint32(s.list.N), Next: uint32(s.next)}
}

// reserve makes sure that n slots can be taken. An error leaves everything as it
// was.
func (s *space) reserve(n int) error {
	need := s.next + max(0, n-s.list.N)
	if need <= s.room {
		return nil
	}
	if need > s.most || int64(need-s.room)*int64(s.slot) > s.budget.left {
		return op.ErrLimit
	}
	// Some more, for batches that are queued before their need is known, as long
	// as there is plenty.
	if more := min(need+need/32+64, s.most); int64(more-s.room)*int64(s.slot) < s.budget.left/16 && s.grow(more) == nil {
		return nil
	}
	return s.grow(need)
}

// grow makes room for the given number of slots in all.
func (s *space) grow(slots int) error {
	if err := s.list.Grow(s.dev, slots, s.most); err != nil {
		return err
	}
	if err := s.memory.Grow(int64(slots) * int64(s.slot)); err != nil {
		return err
	}
	s.budget.left -= int64(slots-s.room) * int64(s.slot)
	s.room = slots
	return nil
}

// free returns the number of slots that can be taken as it is.
func (s *space) free() int { return s.list.N + s.room - s.next }

// took says that n slots were taken: free ones first.
func (s *space) took(n int) {
	fromList := min(n, s.list.N)
	s.list.N -= fromList
	s.next += n - fromList
}

// give adds n slots, which are listed in device memory, to the free ones.
func (s *space) give(st device.Stream, list device.Ptr, n int) error { return s.list.Give(st, list, n) }

func (s *space) close() (err error) {
	err = s.list.Free(s.dev)
	if s.memory != nil {
		err = errors.Join(err, s.memory.Free())
	}
	return err
}

// budget is the memory that leaves and chunks may take together.
type budget struct{ left int64 }
