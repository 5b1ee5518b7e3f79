package faulty

import "github.com/pando-index/pando/internal/device"

type module struct {
	d     *Device
	inner device.Module
}

func (d *Device) Load(ptx string) (m device.Module, err error) {
	err = d.do(Load, func() error {
		inner, err := d.inner.Load(ptx)
		if err != nil {
			return err
		}
		own := &module{d, inner}
		d.keep(own)
		m = own
		return nil
	}, nil)
	return m, err
}

// Kernel returns the kernel of the wrapped device: a kernel has no operations
// that could fail, and functions of the wrapped device's package need the
// original.
func (m *module) Kernel(name string) (k device.Kernel, err error) {
	err = m.d.do(Kernel, func() (err error) {
		k, err = m.inner.Kernel(name)
		return err
	}, nil)
	return k, err
}

func (m *module) Unload() error { return m.d.giveBack(m, m.inner.Unload) }

// stream is a stream that knows its unfinished copies to the host.
type stream struct {
	d     *Device
	inner device.Stream
	outputs
}

func (d *Device) NewStream() (s device.Stream, err error) {
	err = d.do(NewStream, func() error {
		inner, err := d.inner.NewStream()
		if err != nil {
			return err
		}
		own := &stream{d: d, inner: inner, outputs: outputs{mu: &d.mu}}
		d.keep(own)
		s = own
		return nil
	}, nil)
	return s, err
}

func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	return s.d.do(CopyIn, func() error { return s.inner.CopyIn(dst, src) }, nil)
}

func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	o := &output{dst: dst}
	return s.d.do(CopyOut, func() error {
		s.add(o) // first: the copy may be done before the call returns
		err := s.inner.CopyOut(dst, src)
		if err != nil {
			s.settle([]*output{o})
		}
		return err
	}, func() { s.d.spoilOne(dst) })
}

func (s *stream) CopyDevice(dst, src device.Ptr, bytes int) error {
	return s.d.do(CopyDevice, func() error { return s.inner.CopyDevice(dst, src, bytes) }, nil)
}

func (s *stream) Fill(dst device.Ptr, value uint32, bytes int) error {
	return s.d.do(Fill, func() error { return s.inner.Fill(dst, value, bytes) }, nil)
}

func (s *stream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	return s.d.do(Launch, func() error { return s.inner.Launch(k, g, params) }, nil)
}

func (s *stream) Record(e device.Event) error {
	return s.d.do(Record, func() error {
		own, ok := e.(*event)
		if !ok {
			return s.inner.Record(e) // foreign: let the wrapped device report it
		}
		err := s.inner.Record(own.inner)
		if err == nil {
			own.replace(s.pending())
		}
		return err
	}, nil)
}

func (s *stream) Wait(e device.Event) error {
	return s.d.do(Wait, func() error {
		own, ok := e.(*event)
		if !ok {
			return s.inner.Wait(e)
		}
		err := s.inner.Wait(own.inner)
		if err == nil {
			s.add(own.pending()...)
		}
		return err
	}, nil)
}

func (s *stream) Synchronize() error { return s.d.wait(&s.outputs, s.inner.Synchronize) }

func (s *stream) Close() error {
	err := s.d.giveBack(s, s.inner.Close)
	s.settle(s.pending())
	return err
}

// event is an event that knows which copies to the host came before it.
type event struct {
	d     *Device
	inner device.Event
	outputs
}

func (d *Device) NewEvent() (e device.Event, err error) {
	err = d.do(NewEvent, func() error {
		inner, err := d.inner.NewEvent()
		if err != nil {
			return err
		}
		own := &event{d: d, inner: inner, outputs: outputs{mu: &d.mu}}
		d.keep(own)
		e = own
		return nil
	}, nil)
	return e, err
}

func (e *event) Synchronize() error { return e.d.wait(&e.outputs, e.inner.Synchronize) }

func (e *event) Since(earlier device.Event) (ms float64, err error) {
	if own, ok := earlier.(*event); ok {
		earlier = own.inner
	}
	err = e.d.do(Synchronize, func() (err error) {
		done := e.pending()
		if ms, err = e.inner.Since(earlier); err == nil {
			e.settle(done)
		}
		return err
	}, func() { e.fail(e.inner.Synchronize) })
	return ms, err
}

func (e *event) Close() error { return e.d.giveBack(e, e.inner.Close) }

// wait waits for work by calling inner, and settles the copies that are part
// of the work.
func (d *Device) wait(held *outputs, inner func() error) error {
	return d.do(Synchronize, func() error {
		done := held.pending()
		err := inner()
		held.settle(done)
		return err
	}, func() { held.fail(inner) })
}

// fail is wait for a planned failure. It still waits for the work, since a
// caller that was told of a failure owns its memory again.
func (o *outputs) fail(inner func() error) {
	_ = inner() // it has failed, whatever this returns
	o.spoil()
}
