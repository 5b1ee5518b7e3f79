package faulty

import "github.com/pando-index/pando/internal/device"

// growRange is a range whose growing can fail.
type growRange struct {
	d     *Device
	inner device.Range
}

func (d *Device) Reserve(bytes int64) (r device.Range, err error) {
	err = d.do(Reserve, func() error {
		inner, err := d.inner.Reserve(bytes)
		if err != nil {
			return err
		}
		own := &growRange{d, inner}
		d.keep(own)
		r = own
		return nil
	}, nil)
	return r, err
}

// hostRange is a range of host memory whose growing can fail.
type hostRange struct {
	growRange
	inner device.HostRange
}

func (d *Device) ReserveHost(bytes int64) (r device.HostRange, err error) {
	err = d.do(ReserveHost, func() error {
		inner, err := d.inner.ReserveHost(bytes)
		if err != nil {
			return err
		}
		own := &hostRange{growRange{d, inner}, inner}
		d.keep(&own.growRange)
		r = own
		return nil
	}, nil)
	return r, err
}

func (r *hostRange) Bytes() []byte { return r.inner.Bytes() }

func (r *growRange) Base() device.Ptr { return r.inner.Base() }
func (r *growRange) Len() int64       { return r.inner.Len() }

func (r *growRange) Grow(bytes int64) error {
	return r.d.do(Grow, func() error { return r.inner.Grow(bytes) }, nil)
}

func (r *growRange) Free() error { return r.d.giveBack(r, r.inner.Free) }

// Free gives the range back, whose memory nothing must spoil any more.
func (r *hostRange) Free() error {
	r.d.afterLoss()
	for _, s := range r.d.streams() {
		s.forget(r.Bytes())
	}
	return r.growRange.Free()
}
