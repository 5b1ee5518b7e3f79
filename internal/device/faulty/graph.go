package faulty

import "github.com/pando-index/pando/internal/device"

// graph is a graph that knows its copies to the host.
type graph struct {
	d     *Device
	inner device.Graph
	out   [][]byte
}

// NewGraph records the chain first, outside of any operation, so that each one
// in it is an operation of its own: one that fails is not in the graph.
func (d *Device) NewGraph(chain func(device.Stream) error) (g device.Graph, err error) {
	r, err := device.Record(func(s device.Stream) error { return chain(&recorded{s, d}) })
	if err != nil {
		return nil, err
	}
	err = d.do(NewGraph, func() error {
		inner, err := d.inner.NewGraph(r.Replay)
		if err != nil {
			return err
		}
		own := &graph{d, inner, r.Out}
		d.keep(own)
		g = own
		return nil
	}, nil)
	return g, err
}

// recorded is the stream of a chain. Operations that cannot be recorded fail by
// themselves.
type recorded struct {
	device.Stream
	d *Device
}

func (s *recorded) CopyIn(dst device.Ptr, src []byte) error {
	return s.d.do(CopyIn, func() error { return s.Stream.CopyIn(dst, src) }, nil)
}

func (s *recorded) CopyOut(dst []byte, src device.Ptr) error {
	return s.d.do(CopyOut, func() error { return s.Stream.CopyOut(dst, src) }, func() { spoil(dst) })
}

func (s *recorded) CopyDevice(dst, src device.Ptr, bytes int) error {
	return s.d.do(CopyDevice, func() error { return s.Stream.CopyDevice(dst, src, bytes) }, nil)
}

func (s *recorded) Fill(dst device.Ptr, value uint32, bytes int) error {
	return s.d.do(Fill, func() error { return s.Stream.Fill(dst, value, bytes) }, nil)
}

func (s *recorded) Launch(k device.Kernel, g device.Grid, params []byte) error {
	return s.d.do(Launch, func() error { return s.Stream.Launch(k, g, params) }, nil)
}

// Start is one operation, with all the graph's copies to the host.
func (s *stream) Start(g device.Graph) error {
	own, ok := g.(*graph)
	if !ok {
		return s.d.do(Start, func() error { return s.inner.Start(g) }, nil)
	}
	return s.d.do(Start, func() error {
		outs := make([]*output, len(own.out))
		for i, dst := range own.out {
			outs[i] = &output{dst: dst}
		}
		s.add(outs...) // first: the copies may be done before the call returns
		err := s.inner.Start(own.inner)
		if err != nil {
			s.settle(outs)
		}
		return err
	}, func() {
		for _, dst := range own.out {
			spoil(dst)
		}
	})
}

func (g *graph) Close() error { return g.d.giveBack(g, g.inner.Close) }
