//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pando-index/pando/internal/device"
)

// piecewise is a range of addresses that has memory from its start on, piece by piece.
type piecewise struct {
	gpu     *gpu
	room    int64 // bytes of all addresses, a multiple of granule
	granule int64 // pieces are multiples of it, usually 2 MiB

	add     func(bytes int64) error // makes one more piece, behind the others
	release func() error            // gives all pieces back, and the addresses

	mu     sync.Mutex // held while these are called
	length int64
	pieces []int64 // bytes of each: each has to be given back as a whole
	freed  bool
}

func roundUp(n, granule int64) int64 { return (n + granule - 1) / granule * granule }

func (r *piecewise) Len() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.length
}

// Grow adds at least an eighth of what is there, so that a range that grows
// often has few pieces; less if there is no room for that.
func (r *piecewise) Grow(bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.freed:
		return errClosed
	case bytes <= r.length:
		return nil
	case bytes > r.room:
		return fmt.Errorf("%w: %d bytes asked for of a range of %d", device.ErrOutOfMemory, bytes, r.room)
	}
	least := roundUp(bytes, r.granule) - r.length
	step := min(max(least, roundUp(r.length/8, r.granule)), r.room-r.length)
	err := r.add(step)
	if step > least && errors.Is(err, device.ErrOutOfMemory) {
		step = least
		err = r.add(step)
	}
	if err == nil {
		r.pieces = append(r.pieces, step)
		r.length += step
	}
	return err
}

// Free waits for the work on the device, which may be using the memory, and
// returns an error of that work. Freeing again does nothing.
func (r *piecewise) Free() error {
	if lost := r.gpu.context.lost.Load(); lost != nil {
		return *lost // Close of the device frees it
	}
	return r.Close()
}

// Close is Free, for the ledger, on a lost device too.
func (r *piecewise) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed {
		return nil
	}
	r.freed = true
	defer r.gpu.held.removeObject(r)
	err := errors.Join(r.gpu.context.synchronize(), r.release())
	r.pieces, r.length = nil, 0
	return err
}
