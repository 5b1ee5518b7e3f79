package index

import (
	"errors"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/layout"
)

// driver leads to the GPUs. It is nil in a program that links no driver. Code that only
// a program with GPUs needs, kernels above all, is reached through its methods alone:
// the linker leaves it out of a program that does not call LinkGPUs. So nothing else
// may call toGPU and the like, nor may a method of a generic type, since the linker
// keeps the code that all methods of such a type call.
var driver interface {
	open(ordinal int) (device.Device, error)
	// attach makes a copy of an engine if that pays. It returns where batches run, and
	// why.
	attach(e Engine, c Config) (Device, string, error)
}

// LinkGPUs makes open the way to GPUs, and has the program link the code for them. A
// nil open takes the way away. The function that it returns puts back the former one.
// live.LinkGPUs calls it, and is the one for others.
func LinkGPUs(open func(ordinal int) (device.Device, error)) (undo func()) {
	before := driver
	if driver = nil; open != nil {
		driver = linked(open)
	}
	return func() { driver = before }
}

const ReasonNotLinked = `no GPU driver is linked; import _ "github.com/pando-index/pando/cuda"`

// ErrNotLinked is the error of a program that links no driver.
var ErrNotLinked = errors.New(ReasonNotLinked)

// OpenGPU opens a GPU.
func OpenGPU(ordinal int) (device.Device, error) {
	if driver == nil {
		return nil, ErrNotLinked
	}
	return driver.open(ordinal)
}

// attachEngine gives an engine a copy on a GPU, if the program links a driver.
func attachEngine(e Engine, c Config) (Device, string, error) {
	if driver == nil {
		return OnCPU, ReasonNotLinked, nil
	}
	return driver.attach(e, c)
}

// onDevice reports whether a device can hold a layout. It is a function since the
// linker keeps all that a method of a generic type names: see driver.
func onDevice(tree any) bool {
	_, can := tree.(layout.OnDevice)
	return can
}

// linked is a driver: the function that opens a GPU.
type linked func(ordinal int) (device.Device, error)

func (open linked) open(ordinal int) (device.Device, error) { return open(ordinal) }

func (linked) attach(e Engine, c Config) (Device, string, error) {
	switch e := e.(type) {
	case *texts:
		return e.toGPU(c)
	case *numbers[uint32]:
		return numbersToGPU(e, c, nil)
	case *numbers[uint64]:
		return numbersToGPU(e, c, nil)
	case *withValues[uint32]:
		return numbersToGPU(e.numbers, c, e.copiesFaster)
	case *withValues[uint64]:
		return numbersToGPU(e.numbers, c, e.copiesFaster)
	}
	panic("index: no engine that has a copy on a GPU")
}
