package exec

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
)

// attached is a device that holds a copy of an index, with buckets of type B.
// Schedules of numbers and of strings share it.
type attached[B any] struct {
	flow.Schedule[B]
	dev  device.Device
	set  *kernel.Set
	down atomic.Pointer[error]
	once sync.Once
}

// attach makes a device ready for buckets, at most slots of them at once. favor
// is called for each new stream.
func (a *attached[B]) attach(dev device.Device, slots int, favor func(device.Stream)) {
	a.dev = dev
	a.Schedule.Down, a.Schedule.Fail = a.given, a.fail
	a.Slots.Init(dev, slots, favor)
}

// Down returns the reason why the device is no longer used, or nil.
func (a *attached[B]) Down() error {
	if e := a.down.Load(); e != nil {
		return *e
	}
	return nil
}

// given reports whether the device was given up.
func (a *attached[B]) given() bool { return a.down.Load() != nil }

// fail gives the device up, and says so the first time.
func (a *attached[B]) fail(err error) {
	if a.down.CompareAndSwap(nil, &err) {
		device.Warn("pando: the GPU failed, the CPU answers from now on", "device", a.dev.Info().Name, "error", err)
	}
}

// copyIn copies memory to a device, page-locked for the time of the copy if the
// system allows it.
func (a *attached[B]) copyIn(at device.Ptr, part []byte) error {
	if len(part) == 0 {
		return nil
	}
	registered := a.dev.Register(part) == nil
	err := a.Serial.CopyIn(at, part)
	if err == nil {
		err = a.Serial.Synchronize()
	}
	if registered {
		err = errors.Join(err, a.dev.Unregister(part))
	}
	return err
}

// close waits for buckets under way and gives the device back, once. Batches
// under way go on on the CPU.
func (a *attached[B]) close(before func()) (err error) {
	a.once.Do(func() {
		before()
		a.Slots.Close()
		err = a.dev.Close()
	})
	return err
}
