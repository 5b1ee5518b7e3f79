//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/pando-index/pando/internal/device"
)

// hostRange is addresses of the host that are page-locked from their start on, piece
// by piece. Kernels use the same addresses.
type hostRange struct {
	gpu    *gpu
	memory []byte // all addresses: those that nobody has touched take no memory

	mu     sync.Mutex
	length int
	pieces []int // bytes of each piece: each has to be unregistered as a whole
	freed  bool
}

// hostGranule is what pieces are multiples of: a huge page.
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
	r := &hostRange{gpu: g, memory: memory}
	g.held.addObject(r)
	return r, nil
}

func (r *hostRange) Base() device.Ptr { return device.Ptr(start(r.memory)) }

func (r *hostRange) Len() int64 { return int64(len(r.Bytes())) }

func (r *hostRange) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory[:r.length]
}

// Grow adds at least an eighth of what is there, or less where the host does not lock
// so much.
func (r *hostRange) Grow(bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.freed:
		return errClosed
	case bytes <= int64(r.length):
		return nil
	case bytes > int64(len(r.memory)):
		return fmt.Errorf("%w: %d bytes asked for of a range of %d", device.ErrOutOfMemory, bytes, len(r.memory))
	}
	least := int(roundUp(bytes, hostGranule)) - r.length
	step := min(max(least, int(roundUp(int64(r.length/8), hostGranule))), len(r.memory)-r.length)
	err := r.add(step)
	if step > least && errors.Is(err, device.ErrOutOfMemory) {
		err = r.add(least)
	}
	return err
}

// add locks one more piece. The lock must be held.
func (r *hostRange) add(bytes int) error {
	if err := r.gpu.context.call(cuMemHostRegister, start(r.memory[r.length:]), uintptr(bytes), hostPortable|hostMapped); err != nil {
		return err
	}
	r.pieces = append(r.pieces, bytes)
	r.length += bytes
	return nil
}

// Free waits for the work on the device, which may be using the memory, and returns an
// error of that work. Freeing again does nothing.
func (r *hostRange) Free() error {
	if lost := r.gpu.context.lost.Load(); lost != nil {
		return *lost // Close of the device frees it
	}
	return r.Close()
}

// Close is Free, for the ledger, on a lost device too.
func (r *hostRange) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed {
		return nil
	}
	r.freed, r.length = true, 0
	defer r.gpu.held.removeObject(r)
	return errors.Join(r.gpu.context.synchronize(), r.unlock())
}

// unlock gives the memory back, unless the driver holds on to it. With a lost context
// it does not.
func (r *hostRange) unlock() error {
	var errs []error
	at := 0
	for _, n := range r.pieces {
		errs = append(errs, unlessLost(r.gpu.context.call(cuMemHostUnregister, start(r.memory[at:]))))
		at += n
	}
	r.pieces = nil
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return syscall.Munmap(r.memory)
}
