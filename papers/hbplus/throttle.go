package hbplus

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/device"
)

// Throttled is a device whose kernels run in few blocks, to simulate a smaller
// GPU. It is for kernels that search numbers: they take their queries in
// rounds, so that few threads answer all of them. Those that copy entries or
// search strings have a thread for each, and must not be throttled.
type Throttled struct {
	device.Device
	most atomic.Int64
}

// Throttle wraps a device. Closing the wrapper closes the device.
func Throttle(d device.Device) *Throttled { return &Throttled{Device: d} }

// Limit bounds later launches to the given number of blocks, 0 for no limit.
func (t *Throttled) Limit(blocks int) { t.most.Store(int64(blocks)) }

// NewStream makes a stream that keeps to the limit. It is a device.Persister
// where the device's own is one.
func (t *Throttled) NewStream() (device.Stream, error) {
	inner, err := t.Device.NewStream()
	if err != nil {
		return nil, err
	}
	s := throttledStream{inner, t}
	if p, ok := inner.(device.Persister); ok {
		return throttledPersister{s, p}, nil
	}
	return s, nil
}

// NewGraph makes a graph whose launches keep to the limit of this moment.
func (t *Throttled) NewGraph(chain func(device.Stream) error) (device.Graph, error) {
	return t.Device.NewGraph(func(s device.Stream) error { return chain(throttledStream{s, t}) })
}

type throttledStream struct {
	device.Stream
	of *Throttled
}

func (s throttledStream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	if most := int(s.of.most.Load()); most > 0 {
		g.Blocks = min(g.Blocks, most)
	}
	return s.Stream.Launch(k, g, params)
}

// throttledPersister is a stream of a GPU whose cache can be told what to keep.
type throttledPersister struct {
	throttledStream
	device.Persister
}
