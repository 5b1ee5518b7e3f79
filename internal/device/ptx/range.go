package ptx

import (
	"fmt"
	"slices"
	"sort"

	"github.com/pando-index/pando/internal/device"
)

// growRange is a device.Range: an allocation with more addresses than bytes.
// Only the bytes that are there count as memory of the device.
type growRange struct {
	dev  *Device
	base device.Ptr
	at   *allocation
	gone bool
}

// mostRoom is the largest range, in bytes: addresses of a GPU have 47 bits or
// more.
const mostRoom = 1 << 46

// Reserve returns addresses that are never used for anything else. An access
// to what is not there yet is a fault, or an error of the copy.
func (d *Device) Reserve(bytes int64) (device.Range, error) {
	r, err := d.reserve(bytes)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ReserveHost returns memory at addresses of its own, as Reserve does. The limit of
// the device's memory is not that of the host's.
func (d *Device) ReserveHost(bytes int64) (device.HostRange, error) {
	r, err := d.reserve(bytes)
	if err != nil {
		return nil, err
	}
	r.at.onHost = true
	return r, nil
}

func (d *Device) reserve(bytes int64) (*growRange, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	switch {
	case bytes <= 0:
		return nil, fmt.Errorf("%w: ptx: range of %d bytes", device.ErrLaunchFailed, bytes)
	case bytes > mostRoom || d.heap.next > 1<<63:
		return nil, fmt.Errorf("%w: ptx: no addresses for %d bytes", device.ErrOutOfMemory, bytes)
	}
	a := d.heap.place(uint64(bytes))
	a.room = uint64(bytes)
	return &growRange{dev: d, base: device.Ptr(a.base), at: a}, nil
}

func (r *growRange) Base() device.Ptr { return r.base }

func (r *growRange) Len() int64 { return int64(len(r.Bytes())) }

func (r *growRange) Bytes() []byte {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	return r.at.data
}

// Grow adds no more than it is asked for, to the next multiple of 4 bytes.
func (r *growRange) Grow(bytes int64) error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	h, a := &r.dev.heap, r.at
	if bytes > int64(a.room) {
		return fmt.Errorf("%w: ptx: %d bytes asked for of a range of %d", device.ErrOutOfMemory, bytes, a.room)
	}
	bytes = min((bytes+3)&^3, int64(a.room))
	more := bytes - int64(len(a.data))
	if more <= 0 {
		return nil
	}
	if !a.onHost && more > h.limit-h.used {
		return fmt.Errorf("%w: ptx: %d more bytes asked for, %d of %d left", device.ErrOutOfMemory, more, h.limit-h.used, h.limit)
	}
	h.count++
	old := len(a.data)
	a.data = slices.Grow(a.data, int(more))[:bytes]
	noisy(a.data[old:], h.seed+h.count)
	if !a.onHost {
		h.used += more
	}
	return nil
}

// Free ends the range at once: queued work that touches it fails. Freeing
// twice is an error.
func (r *growRange) Free() error {
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	r.gone = true
	for _, s := range r.dev.flights() {
		s.flight.forgetPlaces()
	}
	r.dev.heap.remove(r.at)
	r.at = new(allocation) // nothing is there any more
	return nil
}

func (r *growRange) usable() error {
	if err := r.dev.open(); err != nil {
		return err
	}
	if r.gone {
		return fmt.Errorf("%w: ptx: the range is freed", device.ErrLaunchFailed)
	}
	return nil
}

// reserved returns the range that has addresses for all n bytes at addr, or
// nil.
func (h *heap) reserved(addr, n uint64) *allocation {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].base > addr }) - 1
	if i < 0 || addr-h.live[i].base >= h.live[i].room || h.live[i].room-(addr-h.live[i].base) < n {
		return nil
	}
	return h.live[i]
}

// short describes a range that is too short for an access.
func (a *allocation) short() string {
	return fmt.Sprintf("only %d bytes are there yet of the %d that are reserved at %#x", len(a.data), a.room, a.base)
}
