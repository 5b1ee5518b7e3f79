//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// Devices returns a description of each GPU of this machine, in order of their
// numbers. Without a driver the error wraps device.ErrNoDriver; with a driver
// but no GPU, device.ErrNoGPU.
func Devices() ([]device.Info, error) {
	d, err := library()
	if err != nil {
		return nil, err
	}
	return d.devices()
}

// Open opens a GPU by its number, counted from 0. If there is no such GPU, the
// error wraps device.ErrNoDevice. A GPU may be opened many times; each Device
// frees only what it allocated.
func Open(ordinal int) (device.Device, error) {
	d, err := library()
	if err != nil {
		return nil, err
	}
	return d.open(ordinal)
}

func (d *driver) devices() ([]device.Info, error) {
	var count int32
	if err := d.call(cuDeviceGetCount, uintptr(unsafe.Pointer(&count))); err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, device.ErrNoGPU
	}
	infos := make([]device.Info, count)
	for i := range infos {
		var gpu int32
		if err := d.call(cuDeviceGet, uintptr(unsafe.Pointer(&gpu)), uintptr(i)); err != nil {
			return nil, err
		}
		info, err := d.info(gpu)
		if err != nil {
			return nil, err
		}
		infos[i] = info
	}
	return infos, nil
}

func (d *driver) open(ordinal int) (device.Device, error) {
	c, err := d.retain(ordinal)
	if err != nil {
		return nil, err
	}
	info, err := d.info(c.gpu)
	if err != nil {
		return nil, errors.Join(err, c.release())
	}
	g := &gpu{context: c, info: info}
	g.open.value = c.handle[0]
	return g, nil
}

// Numbers of device attributes.
const (
	attrProcessors        = 16
	attrL2Bytes           = 38
	attrMajor             = 75
	attrMinor             = 76
	attrSameAddresses     = 91 // kernels use registered host memory by its own addresses
	attrVirtualMemory     = 102
	attrPersistingL2Bytes = 108
	attrAccessWindowBytes = 109
)

func (d *driver) info(gpu int32) (device.Info, error) {
	var (
		name    [256]byte
		total   uint64
		version int32
	)
	errs := []error{
		d.call(cuDeviceGetName, uintptr(unsafe.Pointer(&name)), unsafe.Sizeof(name)-1, uintptr(gpu)),
		d.call(cuDeviceTotalMem, uintptr(unsafe.Pointer(&total)), uintptr(gpu)),
		d.call(cuDriverGetVersion, uintptr(unsafe.Pointer(&version))),
	}
	get := func(attribute uintptr) int {
		var v int32
		errs = append(errs, d.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), attribute, uintptr(gpu)))
		return int(v)
	}
	text, _, _ := strings.Cut(string(name[:]), "\x00")
	info := device.Info{
		Name:       text,
		Driver:     driverName(int(version)),
		Capability: 10*get(attrMajor) + get(attrMinor),
		Processors: get(attrProcessors),
		L2Bytes:    int64(get(attrL2Bytes)),
		TotalBytes: int64(total),
	}
	return info, errors.Join(errs...)
}

// driverName returns the CUDA version (12040 for 12.4), and the driver's own
// version where the kernel module shows it.
func driverName(version int) string {
	cuda := fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)
	if own, err := os.ReadFile("/sys/module/nvidia/version"); err == nil {
		return strings.TrimSpace(string(own)) + ", " + cuda
	}
	return cuda
}

// gpu is an open device.
type gpu struct {
	context *context
	info    device.Info
	open    handle // held by every call; its value is the context
	held    ledger
}

func (g *gpu) Info() device.Info { return g.info }

// call is context.call while the device is open.
//
//go:uintptrescapes
func (g *gpu) call(e entry, args ...uintptr) error {
	if _, err := g.open.hold(); err != nil {
		return err
	}
	defer g.open.release()
	return g.context.call(e, args...)
}

// Close waits for the work on the device, frees everything this Device holds
// and releases the context. It returns an error of work that nobody waited
// for. A lost device is not an error, since its memory is freed with the
// context. Closing again does nothing.
func (g *gpu) Close() error {
	return g.open.destroy(func(uintptr) error {
		return errors.Join(g.freeAll(), g.context.release())
	})
}

// freeAll closes the streams before it frees memory, so that no new work can
// use it, and waits for the queued work.
func (g *gpu) freeAll() error {
	objects, blocks := g.held.all()
	slices.SortFunc(objects, func(a, b io.Closer) int { return closing(a) - closing(b) })
	var errs []error
	for _, o := range objects {
		errs = append(errs, unlessLost(o.Close()))
	}
	errs = append(errs, unlessLost(g.context.synchronize()))
	for _, b := range blocks {
		errs = append(errs, unlessLost(g.context.call(b.freedBy, b.address)))
	}
	return errors.Join(errs...)
}

// closing returns the place of an object in the order in which Close closes:
// graphs before the modules of their kernels, ranges after the streams whose
// work uses them.
func closing(o io.Closer) int {
	switch o.(type) {
	case *graph:
		return 0
	case *piecewise:
		return 2
	}
	return 1
}

func unlessLost(err error) error {
	if errors.Is(err, device.ErrLost) {
		return nil
	}
	return err
}
