package faulty

import (
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// block is memory that is to be freed: device memory, or host memory
// identified by its first byte.
type block struct {
	ptr        device.Ptr
	host       *byte
	registered bool
}

// Info describes the wrapped device.
func (d *Device) Info() device.Info { return d.inner.Info() }

func (d *Device) FreeBytes() (free int64, err error) {
	err = d.do(FreeBytes, func() (err error) {
		free, err = d.inner.FreeBytes()
		return err
	}, nil)
	return free, err
}

func (d *Device) Alloc(bytes int) (p device.Ptr, err error) {
	err = d.do(Alloc, func() (err error) {
		if p, err = d.inner.Alloc(bytes); err == nil {
			d.keep(block{ptr: p})
		}
		return err
	}, nil)
	return p, err
}

func (d *Device) Free(p device.Ptr) error {
	return d.giveBack(block{ptr: p}, func() error { return d.inner.Free(p) })
}

func (d *Device) HostAlloc(bytes int) (b []byte, err error) {
	err = d.do(HostAlloc, func() (err error) {
		if b, err = d.inner.HostAlloc(bytes); err != nil {
			b = nil
			return err
		}
		d.keep(block{host: unsafe.SliceData(b)})
		return nil
	}, nil)
	return b, err
}

func (d *Device) HostFree(b []byte) error {
	return d.unpin(b, false, d.inner.HostFree)
}

func (d *Device) Register(b []byte) error {
	return d.do(Register, func() error {
		err := d.inner.Register(b)
		if err == nil && len(b) > 0 { // some devices accept an empty slice and do nothing
			d.keep(block{host: unsafe.SliceData(b), registered: true})
		}
		return err
	}, nil)
}

func (d *Device) Unregister(b []byte) error {
	return d.unpin(b, true, d.inner.Unregister)
}

// unpin frees host memory. It may no longer exist afterwards, so nothing must
// spoil it any more.
func (d *Device) unpin(b []byte, registered bool, free func([]byte) error) error {
	d.afterLoss()
	for _, s := range d.streams() {
		s.forget(b)
	}
	return d.giveBack(block{host: unsafe.SliceData(b), registered: registered}, func() error { return free(b) })
}

// Close closes the wrapped device, with all it holds, on a lost device too.
func (d *Device) Close() error {
	lost := d.afterLoss()
	for _, s := range d.streams() {
		s.settle(s.pending())
	}
	err := d.inner.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.live)
	if lost {
		return errLost("Close")
	}
	return err
}
