//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/pando-index/pando/internal/device"
)

// hostRange is addresses of the host that are page-locked from their start on, piece
// by piece. Kernels use the same addresses.
type hostRange struct {
	piecewise
	memory []byte // all addresses: those that nobody has touched take no memory
}

// hostGranule is the size that pieces are multiples of: a huge page.
const hostGranule = 2 << 20

// ReserveHost returns an error unless bytes is above 0. It needs a GPU that uses host
// memory by the host's addresses (device.ErrUnsupported).
func (g *gpu) ReserveHost(bytes int64) (device.HostRange, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: cannot reserve %d bytes", bytes)
	}
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	switch can, err := g.context.attribute(attrSameAddresses); {
	case err != nil:
		return nil, err
	case can == 0:
		return nil, fmt.Errorf("%w: it has other addresses for host memory", device.ErrUnsupported)
	case bytes > 1<<46:
		return nil, fmt.Errorf("%w: no addresses for %d bytes", device.ErrOutOfMemory, bytes)
	}
	const private = syscall.MAP_ANON | syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
	memory, err := syscall.Mmap(-1, 0, int(roundUp(bytes, hostGranule)), syscall.PROT_READ|syscall.PROT_WRITE, private)
	if err != nil {
		return nil, fmt.Errorf("%w: no addresses for %d bytes: %v", device.ErrOutOfMemory, bytes, err)
	}
	_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE) // faster to lock; without it all works
	r := &hostRange{piecewise{gpu: g, granule: hostGranule, room: int64(len(memory))}, memory}
	r.add, r.release = r.lockMore, r.unlock
	g.held.addObject(&r.piecewise)
	return r, nil
}

func (r *hostRange) Base() device.Ptr { return device.Ptr(start(r.memory)) }

func (r *hostRange) Bytes() []byte { return r.memory[:r.Len()] }

// lockMore locks one more piece.
func (r *hostRange) lockMore(bytes int64) error {
	return r.gpu.context.call(cuMemHostRegister, start(r.memory[r.length:]), uintptr(bytes), hostPortable|hostMapped)
}

// unlock gives the memory back, unless the driver holds on to it. With a lost context
// it does not.
func (r *hostRange) unlock() error {
	var errs []error
	at := int64(0)
	for _, n := range r.pieces {
		errs = append(errs, unlessLost(r.gpu.context.call(cuMemHostUnregister, start(r.memory[at:]))))
		at += n
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return syscall.Munmap(r.memory)
}
