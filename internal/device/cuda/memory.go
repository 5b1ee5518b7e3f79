//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// hostPortable makes memory page-locked for every context of the process, hostMapped
// lets kernels of the context use it.
const (
	hostPortable = 1
	hostMapped   = 2
)

func (g *gpu) FreeBytes() (int64, error) {
	var free, total uint64
	err := g.call(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return int64(free), err
}

// acquire calls a function that returns a block of the given bytes to be freed later, and records
// it. The device is held throughout, so that Close finds either nothing or all of it.
func (g *gpu) acquire(bytes int, call func() (block, error)) error {
	if _, err := g.open.hold(); err != nil {
		return err
	}
	defer g.open.release()
	b, err := call()
	if err == nil {
		g.held.addBlock(b, bytes)
	}
	return err
}

// giveBack frees a block that acquire recorded; any other block is an error.
func (g *gpu) giveBack(b block) error {
	if _, err := g.open.hold(); err != nil {
		return err
	}
	defer g.open.release()
	if !g.held.takeBlock(b) {
		return fmt.Errorf("cuda: %v: this device does not hold %#x", b.freedBy, b.address)
	}
	return g.context.call(b.freedBy, b.address)
}

// Alloc returns an error unless bytes is above 0.
func (g *gpu) Alloc(bytes int) (device.Ptr, error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("cuda: cannot allocate %d bytes", bytes)
	}
	var address uint64
	err := g.acquire(bytes, func() (block, error) {
		err := g.context.call(cuMemAlloc, uintptr(unsafe.Pointer(&address)), uintptr(bytes))
		return block{cuMemFree, uintptr(address)}, err
	})
	return device.Ptr(address), err
}

// Free waits for work that is using the memory. Freeing 0 does nothing.
func (g *gpu) Free(p device.Ptr) error {
	if p == 0 {
		return nil
	}
	return g.giveBack(block{cuMemFree, uintptr(p)})
}

// HostAlloc returns an error unless bytes is above 0. The memory is
// page-locked for all GPUs of the process.
func (g *gpu) HostAlloc(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: cannot allocate %d bytes", bytes)
	}
	var address *byte
	err := g.acquire(bytes, func() (block, error) {
		err := g.context.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&address)), uintptr(bytes), hostPortable)
		return block{cuMemFreeHost, uintptr(unsafe.Pointer(address))}, err
	})
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(address, bytes), nil
}

// HostFree takes a slice with the same start as the one from HostAlloc. It
// ignores an empty slice.
func (g *gpu) HostFree(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	return g.giveBack(block{cuMemFreeHost, start(b)})
}

// Register does nothing for an empty slice. It is an error if the memory is
// already registered, by any device of the process.
func (g *gpu) Register(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return g.acquire(len(b), func() (block, error) {
		err := g.context.call(cuMemHostRegister, start(b), uintptr(len(b)), hostPortable)
		return block{cuMemHostUnregister, start(b)}, err
	})
}

// Unregister takes a slice with the same start as the one given to Register.
func (g *gpu) Unregister(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	return g.giveBack(block{cuMemHostUnregister, start(b)})
}

// start returns the address of memory that is not managed by Go and so does
// not move.
func start(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
