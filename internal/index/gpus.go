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
	// attach makes a copy of an engine, or of a map, if that pays. It returns where
	// batches run, and why.
	attach(e engine, c Config) (Device, string, error)
	attachMap(m keyMap, c Config, valSize int) (keyMap, Device, string, error)
	// solo makes a map of soloEntries.
	solo(entries any, c Config) (keyMap, error)
}

// LinkGPUs makes open the way to GPUs, and has the program link the code for them. A
// nil open takes the way away. The function that it returns puts back the former one.
// Package cuda calls it as a program starts; tests put the interpreter in the place
// of a GPU.
func LinkGPUs(open func(ordinal int) (device.Device, error)) (undo func()) {
	before := driver
	if driver = nil; open != nil {
		driver = linked(open)
	}
	return func() { driver = before }
}

const reasonNotLinked = `no GPU driver is linked; import _ "github.com/pando-index/pando/cuda"`

// ErrNotLinked is the error of a program that links no driver.
var ErrNotLinked = errors.New(reasonNotLinked)

// OpenGPU opens a GPU.
func OpenGPU(ordinal int) (device.Device, error) {
	if driver == nil {
		return nil, ErrNotLinked
	}
	return driver.open(ordinal)
}

// attachEngine gives an engine a copy on a GPU, if the program links a driver.
func attachEngine(e engine, c Config) (Device, string, error) {
	if driver == nil {
		return onCPU, reasonNotLinked, nil
	}
	return driver.attach(e, c)
}

// attachMap gives a map with values of some bytes a copy on a GPU, if the program links
// a driver.
func attachMap(m keyMap, c Config, valSize int) (keyMap, Device, string, error) {
	if driver == nil {
		return m, onCPU, reasonNotLinked, nil
	}
	return driver.attachMap(m, c, valSize)
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

func (linked) attach(e engine, c Config) (Device, string, error) {
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

func (linked) attachMap(m keyMap, c Config, valSize int) (keyMap, Device, string, error) {
	switch m := m.(type) {
	case *textMap:
		return followTexts(m, valSize, c)
	case *codes[uint32]:
		return twinCodes(m, c)
	case *codes[uint64]:
		return twinCodes(m, c)
	}
	panic("index: no map that has a copy on a GPU")
}

func (linked) solo(entries any, c Config) (keyMap, error) {
	switch e := entries.(type) {
	case *soloEntries[uint32]:
		return newSolo(e, c)
	case *soloEntries[uint64]:
		return newSolo(e, c)
	}
	panic("index: no entries for a GPU alone")
}
