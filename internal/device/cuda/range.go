//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// memLocation is the driver's CUmemLocation.
type memLocation struct {
	kind int32 // CUmemLocationType
	id   int32 // CUdevice
}

// memProp is the driver's CUmemAllocationProp.
type memProp struct {
	kind        int32 // CUmemAllocationType
	handleTypes int32 // to export it to other processes
	location    memLocation
	win32       uintptr
	compression uint8
	rdma        uint8
	usage       uint16
	_           [4]uint8
}

// memAccess is the driver's CUmemAccessDesc.
type memAccess struct {
	location memLocation
	flags    int32 // CUmemAccess_flags
}

// location is where the memory of this context's GPU is.
func (c *context) location() memLocation {
	const onDevice = 1
	return memLocation{onDevice, c.gpu}
}

// prop describes the memory of ranges.
func (c *context) prop() memProp {
	const pinned = 1 // all that there is on a GPU
	return memProp{kind: pinned, location: c.location()}
}

// growRange is a range of addresses that memory is mapped to from its start on,
// piece by piece. Its memory belongs to the process rather than to the context,
// so it has to be freed on a lost device, too.
type growRange struct {
	piecewise
	base uint64
}

// Reserve returns an error unless bytes is above 0. It needs a GPU and a driver
// that can map memory (device.ErrUnsupported).
func (g *gpu) Reserve(bytes int64) (device.Range, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: cannot reserve %d bytes", bytes)
	}
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	granule, err := g.context.granule()
	if err != nil {
		return nil, err
	}
	if bytes > math.MaxInt64-granule {
		return nil, fmt.Errorf("%w: no addresses for %d bytes", device.ErrOutOfMemory, bytes)
	}
	r := &growRange{piecewise: piecewise{gpu: g, granule: granule, room: roundUp(bytes, granule)}}
	r.add, r.release = r.mapMore, r.unmap
	if err := g.context.call(cuMemAddressReserve, uintptr(unsafe.Pointer(&r.base)), uintptr(r.room), 0, 0, 0); err != nil {
		return nil, err
	}
	g.held.addObject(&r.piecewise)
	return r, nil
}

// granule returns what sizes of mapped memory are multiples of, or an error if
// memory cannot be mapped.
func (c *context) granule() (int64, error) {
	if err := c.driver.has(cuMemAddressReserve, cuMemGetAllocationGranularity); err != nil {
		return 0, err
	}
	switch can, err := c.attribute(attrVirtualMemory); {
	case err != nil:
		return 0, err
	case can == 0:
		return 0, fmt.Errorf("%w: its memory cannot be mapped", device.ErrUnsupported)
	}
	const recommended = 1
	prop, n := c.prop(), uint64(0)
	err := c.call(cuMemGetAllocationGranularity, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&prop)), recommended)
	if err == nil && (n == 0 || n > 1<<40) {
		err = fmt.Errorf("%w: memory is mapped in pieces of %d bytes", device.ErrUnsupported, n)
	}
	return int64(n), err
}

func (r *growRange) Base() device.Ptr { return device.Ptr(r.base) }

// mapMore maps one more piece.
func (r *growRange) mapMore(bytes int64) error {
	const readWrite = 3
	c, at, n := r.gpu.context, uintptr(r.base)+uintptr(r.length), uintptr(bytes)
	prop, access := c.prop(), memAccess{c.location(), readWrite}
	var memory uint64 // CUmemGenericAllocationHandle
	if err := c.call(cuMemCreate, uintptr(unsafe.Pointer(&memory)), n, uintptr(unsafe.Pointer(&prop)), 0); err != nil {
		return err
	}
	if err := c.call(cuMemMap, at, n, 0, uintptr(memory), 0); err != nil {
		return errors.Join(err, c.clean(cuMemRelease, uintptr(memory)))
	}
	err := c.clean(cuMemRelease, uintptr(memory)) // from here on, the mapping keeps it
	if err == nil {
		err = c.call(cuMemSetAccess, at, n, uintptr(unsafe.Pointer(&access)), 1)
	}
	if err != nil {
		return errors.Join(err, c.clean(cuMemUnmap, at, n))
	}
	return nil
}

// unmap frees the memory, and the addresses once nothing is mapped to them.
func (r *growRange) unmap() error {
	var errs []error
	c, at := r.gpu.context, uintptr(r.base)
	for _, n := range r.pieces {
		errs = append(errs, c.clean(cuMemUnmap, at, uintptr(n)))
		at += uintptr(n)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.clean(cuMemAddressFree, uintptr(r.base), uintptr(r.room))
}
