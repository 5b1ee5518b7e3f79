package index

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/device"
)

// Device is where batches run.
type Device struct {
	Kind    DeviceKind
	Ordinal int // of a GPU
}

// DeviceKind is a kind of device.
type DeviceKind uint8

const (
	Auto   DeviceKind = iota // the fastest
	CPU                      // the cores of the machine
	GPU                      // a GPU that holds the index
	Hybrid                   // a GPU that holds inner nodes, and the CPU
)

// String returns the device as ParseDevice takes it.
func (d Device) String() string {
	switch d.Kind {
	case Auto:
		return "auto"
	case CPU:
		return "cpu"
	case GPU:
		return "gpu:" + strconv.Itoa(d.Ordinal)
	default:
		return "hybrid:" + strconv.Itoa(d.Ordinal)
	}
}

// ParseDevice is the inverse of String; the empty name is Auto, and a GPU
// without a number is the first.
func ParseDevice(s string) (Device, error) {
	kind, number, numbered := strings.Cut(strings.ToLower(strings.TrimSpace(s)), ":")
	i := 0
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			kind = "none"
		}
		i = n
	}
	switch {
	case kind == "" && !numbered || kind == "auto" && !numbered:
		return Device{Kind: Auto}, nil
	case kind == "cpu" && !numbered:
		return Device{Kind: CPU}, nil
	case kind == "gpu":
		return Device{GPU, i}, nil
	case kind == "hybrid":
		return Device{Hybrid, i}, nil
	}
	return Device{}, Problem(ErrNoDevice, "%q; take auto, cpu, gpu:0 or hybrid:0", s)
}

// PreferCPU reports whether batches that the CPU answers faster are its own.
// Tests set it to false: the interpreter is never faster.
var PreferCPU = true

// SampleKeys is the number of keys with which CPU and GPU are compared. Tests
// set it to less: the interpreter takes its time.
var SampleKeys = 512 << 10

// AutoEntries is the size from which on Auto looks for a GPU: below, an index
// is in the CPU's caches, and opening a GPU takes longer than building it.
const AutoEntries = 1 << 20

// Why batches run on the CPU.
const (
	ReasonAsked    = "asked for"
	ReasonSmall    = "small enough for the CPU's caches"
	ReasonMeasured = "measured: the CPU alone is faster for batches of any size"
	reasonFile     = "opened from a file: ask with On(GPU(0)) to copy it to a GPU"
)

// OnCPU is the CPU.
var OnCPU = Device{Kind: CPU}

// WithoutGPU returns where batches run if an index could not be copied to a
// GPU: on the CPU, unless the GPU asked for does not exist.
func WithoutGPU(asked Device, err error) (Device, string, error) {
	switch {
	case errors.Is(err, device.ErrNoGPU):
		return OnCPU, "no GPU on this machine that its driver sees", nil
	case errors.Is(err, device.ErrNoDevice) && asked.Kind != Auto:
		return asked, "", Problem(ErrNoDevice, "On(%v): %w; `pando devices` lists what there is", asked, err)
	case errors.Is(err, device.ErrNoDriver):
		return OnCPU, "no GPU driver on this machine", nil
	}
	device.Warn("pando: the index is not on the GPU, the CPU answers", "error", err)
	return OnCPU, "GPU not used: " + err.Error(), nil
}

// OpenWithin opens a GPU, and returns how many bytes of it an index may take.
func OpenWithin(ordinal int, room int64) (dev device.Device, free int64, err error) {
	if dev, err = OpenGPU(ordinal); err != nil {
		return nil, 0, err
	}
	if free, err = dev.FreeBytes(); err != nil {
		return nil, 0, errors.Join(err, dev.Close())
	}
	if room > 0 {
		free = min(free, room)
	}
	return dev, free, nil
}

// LeaveOut gives a GPU back: batches run on the CPU, and why. A GPU that cannot
// even be given back is no reason to have no index.
func LeaveOut(gpu interface{ Close() error }, why string) (Device, string, error) {
	if err := gpu.Close(); err != nil {
		device.Warn("pando: the GPU could not be given back", "error", err)
	}
	return OnCPU, why, nil
}

// Spread returns numbers below n that are spread at random, the same each time.
func Spread(count, n int) []int {
	out := make([]int, count)
	x := uint64(1)
	for i := range out {
		x = x*6364136223846793005 + 1442695040888963407
		out[i] = int(x >> 16 % uint64(n))
	}
	return out
}
