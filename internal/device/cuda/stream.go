//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// maxParams is the size of the largest parameter block that every driver
// accepts.
const maxParams = 4096

// stream is a CUDA stream.
type stream struct {
	handle
	gpu    *gpu
	launch launch
}

// launch holds what the driver reads during a launch. It is part of the
// stream, on the heap, so that a launch allocates nothing and the memory does
// not move during the call, as a goroutine's stack may.
type launch struct {
	mu     sync.Mutex
	args   [11]uintptr // arguments of the call
	extra  [5]uintptr  // tags and values, in the form the driver expects
	bytes  uintptr
	params [maxParams]byte
}

// init fills in what stays the same. The launch must not be copied afterwards.
func (l *launch) init() {
	const end, buffer, bufferBytes = 0, 1, 2
	l.extra = [...]uintptr{
		buffer, uintptr(unsafe.Pointer(&l.params)),
		bufferBytes, uintptr(unsafe.Pointer(&l.bytes)),
		end,
	}
}

// NewStream returns a stream that does not wait for the driver's default
// stream.
func (g *gpu) NewStream() (device.Stream, error) {
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	s, err := g.makeStream()
	if err != nil {
		return nil, err
	}
	g.held.addObject(s)
	return s, nil
}

// makeStream returns a stream that is not in the ledger.
func (g *gpu) makeStream() (*stream, error) {
	const nonBlocking = 1
	s := &stream{gpu: g}
	if err := g.context.call(cuStreamCreate, uintptr(unsafe.Pointer(&s.value)), nonBlocking); err != nil {
		return nil, err
	}
	s.launch.init()
	return s, nil
}

// CopyIn does nothing if src is empty. Memory that is not page-locked is
// copied too, but the call may then wait for the stream.
func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	h, err := s.hold()
	if err != nil || len(src) == 0 {
		return s.unused(err)
	}
	defer s.release()
	return s.gpu.context.call4(cuMemcpyHtoDAsync,
		uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), h)
}

// CopyOut does nothing if dst is empty. Memory that is not page-locked is
// copied too, but the call then waits for the copy.
func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	h, err := s.hold()
	if err != nil || len(dst) == 0 {
		return s.unused(err)
	}
	defer s.release()
	return s.gpu.context.call4(cuMemcpyDtoHAsync,
		uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)), h)
}

// CopyDevice does nothing if bytes is 0; a negative number is an error.
func (s *stream) CopyDevice(dst, src device.Ptr, bytes int) error {
	if bytes < 0 {
		return fmt.Errorf("cuda: cannot copy %d bytes", bytes)
	}
	h, err := s.hold()
	if err != nil || bytes == 0 {
		return s.unused(err)
	}
	defer s.release()
	return s.gpu.context.call4(cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), h)
}

// Fill does nothing if bytes is 0; it is an error if bytes is negative or not
// a multiple of the value's size.
func (s *stream) Fill(dst device.Ptr, value uint32, bytes int) error {
	if bytes < 0 || bytes%4 != 0 {
		return fmt.Errorf("cuda: cannot fill %d bytes with 32-bit values", bytes)
	}
	h, err := s.hold()
	if err != nil || bytes == 0 {
		return s.unused(err)
	}
	defer s.release()
	return s.gpu.context.call4(cuMemsetD32Async, uintptr(dst), uintptr(value), uintptr(bytes/4), h)
}

// unused ends an operation that has nothing to do. err tells whether the
// stream was closed; if it was not, unused releases the stream.
func (s *stream) unused(err error) error {
	if err == nil {
		s.release()
	}
	return err
}

// Launch accepts at most 4096 bytes of parameters. Dynamic shared memory
// beyond the 48 KiB that any kernel has is requested as needed.
func (s *stream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	own, ok := k.(*kernel)
	if !ok || own.module.gpu.context != s.gpu.context {
		return fmt.Errorf("%w: the kernel is not of this GPU", device.ErrLaunchFailed)
	}
	if err := checkGrid(g); err != nil {
		return err
	}
	if len(params) > maxParams {
		return fmt.Errorf("%w: %d bytes of parameters, %d are the most", device.ErrLaunchFailed, len(params), maxParams)
	}
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer s.release()
	if _, err := own.module.hold(); err != nil {
		return err
	}
	defer own.module.release()
	if err := own.allow(g.Shared); err != nil {
		return err
	}
	return s.start(h, own.function, g, params)
}

// start queues the kernel. The caller holds everything passed in.
func (s *stream) start(h, function uintptr, g device.Grid, params []byte) error {
	l := &s.launch
	l.mu.Lock()
	defer l.mu.Unlock()
	var extra uintptr // none for a kernel without parameters
	if len(params) > 0 {
		l.bytes = uintptr(copy(l.params[:], params))
		extra = uintptr(unsafe.Pointer(&l.extra))
	}
	l.args = [...]uintptr{
		function, uintptr(g.Blocks), 1, 1, uintptr(g.Threads), 1, 1,
		uintptr(g.Shared), h, 0, extra,
	}
	return s.gpu.context.do(cuLaunchKernel, l.args[:]) // l.mu keeps l alive
}

// Record marks the work queued so far. An event recorded again forgets the
// earlier mark.
func (s *stream) Record(e device.Event) error { return s.with(e, cuEventRecord) }

// Wait does nothing for an event that was never recorded.
func (s *stream) Wait(e device.Event) error { return s.with(e, cuStreamWaitEvent) }

// with calls one of the two functions that take a stream and an event.
func (s *stream) with(e device.Event, call entry) error {
	own, ok := e.(*event)
	if !ok || own.gpu.context != s.gpu.context {
		return errForeignEvent
	}
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer s.release()
	mark, err := own.hold()
	if err != nil {
		return err
	}
	defer own.release()
	if call == cuEventRecord {
		return s.gpu.context.call4(call, mark, h, 0, 0)
	}
	return s.gpu.context.call4(call, h, mark, 0, 0)
}

func (s *stream) Synchronize() error {
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer s.release()
	return s.gpu.context.call4(cuStreamSynchronize, h, 0, 0, 0)
}

// Close lets queued work finish by itself. Closing again does nothing.
func (s *stream) Close() error {
	return s.destroy(func(h uintptr) error {
		defer s.gpu.held.removeObject(s)
		return s.gpu.context.call(cuStreamDestroy, h)
	})
}

var errForeignEvent = errors.New("cuda: the event is not of this GPU")

// event is a CUDA event that records a time.
type event struct {
	handle
	gpu *gpu
}

func (g *gpu) NewEvent() (device.Event, error) {
	const withTime = 0
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	e := &event{gpu: g}
	if err := g.context.call(cuEventCreate, uintptr(unsafe.Pointer(&e.value)), withTime); err != nil {
		return nil, err
	}
	g.held.addObject(e)
	return e, nil
}

// Synchronize returns at once if the event was never recorded.
func (e *event) Synchronize() error {
	h, err := e.hold()
	if err != nil {
		return err
	}
	defer e.release()
	return e.gpu.context.call4(cuEventSynchronize, h, 0, 0, 0)
}

// Since waits for both events. It is an error if one was never recorded.
func (e *event) Since(earlier device.Event) (float64, error) {
	from, ok := earlier.(*event)
	if !ok || from.gpu.context != e.gpu.context {
		return 0, errForeignEvent
	}
	end, err := e.hold()
	if err != nil {
		return 0, err
	}
	defer e.release()
	begin, err := from.hold()
	if err != nil {
		return 0, err
	}
	defer from.release()
	return e.gpu.context.elapsed(begin, end)
}

func (c *context) elapsed(begin, end uintptr) (float64, error) {
	for _, h := range [...]uintptr{begin, end} {
		if err := c.call(cuEventSynchronize, h); err != nil {
			return 0, err
		}
	}
	var ms float32
	err := c.call(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), begin, end)
	return float64(ms), err
}

// Close may be called while the event is still queued in a stream. Closing
// again does nothing.
func (e *event) Close() error {
	return e.destroy(func(h uintptr) error {
		defer e.gpu.held.removeObject(e)
		return e.gpu.context.call(cuEventDestroy, h)
	})
}
