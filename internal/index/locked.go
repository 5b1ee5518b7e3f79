package index

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/par"
)

// Locked is page-locked memory that a GPU reads and writes by itself.
type Locked struct {
	Bytes []byte
	dev   device.Device
}

// Lock takes n bytes, all zero. It returns nil where there is no GPU, or no driver of one
// is linked.
func Lock(n int) (*Locked, error) {
	dev, err := OpenGPU(0)
	if errors.Is(err, ErrNotLinked) || errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := dev.HostAlloc(n)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %d bytes to page-lock: %w", ErrMemoryLimit, n, err), dev.Close())
	}
	par.Clear(raw)
	device.Share(raw)
	return &Locked{raw, dev}, nil
}

// Free gives the memory back.
func (l *Locked) Free() error {
	device.Unshare(l.Bytes)
	return errors.Join(l.dev.HostFree(l.Bytes), l.dev.Close())
}
