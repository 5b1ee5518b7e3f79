// Package machine opens the device for the trees of papers/thesis and papers/kaczmarek:
// a GPU, or an interpreter of their kernels that runs anywhere.
package machine

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
)

// GPU opens an NVIDIA GPU by its number. It needs the driver and nothing else.
func GPU(number int) (device.Device, error) { return cuda.Open(number) }

// Interpreter returns a device in plain Go, for small trees: it is slow, and reports
// accesses outside of memory, races and deadlocks as errors.
func Interpreter() device.Device { return ptx.New() }
