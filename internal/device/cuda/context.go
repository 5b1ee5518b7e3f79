//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// context is the driver's primary context of one GPU, shared by all devices
// that this process has opened on it.
type context struct {
	driver  *driver
	ordinal int
	gpu     int32      // CUdevice
	handle  [1]uintptr // CUcontext, as an argument list
	users   int        // guarded by driver.mu

	lost atomic.Pointer[error] // the error of every call once the context is dead

	// capture is held while a stream is captured, and for reading by goroutines
	// that wait for the whole context, which the driver refuses meanwhile.
	capture sync.RWMutex
}

// retain returns the context of a GPU, creating it if nobody holds it yet.
func (d *driver) retain(ordinal int) (*context, error) {
	if ordinal < 0 || ordinal > math.MaxInt32 {
		return nil, fmt.Errorf("%w: number %d", device.ErrNoDevice, ordinal)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.contexts[ordinal]; c != nil {
		if lost := c.lost.Load(); lost != nil {
			return nil, *lost
		}
		c.users++
		return c, nil
	}
	c := &context{driver: d, ordinal: ordinal, users: 1}
	if err := d.call(cuDeviceGet, uintptr(unsafe.Pointer(&c.gpu)), uintptr(ordinal)); err != nil {
		return nil, err
	}
	if err := d.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&c.handle)), uintptr(c.gpu)); err != nil {
		return nil, err
	}
	d.contexts[ordinal] = c
	return c, nil
}

// release drops one use of the context. With the last one the driver destroys
// it, and all the memory in it. A dead context is released like any other; the
// driver's error for that is ignored, since it is already known.
func (c *context) release() error {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if c.users--; c.users > 0 {
		return nil
	}
	delete(c.driver.contexts, c.ordinal)
	err := c.driver.call(cuDevicePrimaryCtxRelease, uintptr(c.gpu))
	if c.lost.Load() != nil {
		return nil
	}
	return err
}

// call calls the driver with the context current, and allocates its argument
// list. Memory that the arguments point to does not move meanwhile.
//
//go:uintptrescapes
func (c *context) call(e entry, args ...uintptr) error { return c.do(e, args) }

// frames are argument lists for call4.
var frames = sync.Pool{New: func() any { return new([4]uintptr) }}

// call4 is call for the calls that every batch makes: it does not allocate.
// Arguments beyond those that the function takes are 0, which C ignores.
//
//go:uintptrescapes
func (c *context) call4(e entry, a0, a1, a2, a3 uintptr) error {
	f := frames.Get().(*[4]uintptr)
	*f = [...]uintptr{a0, a1, a2, a3}
	err := c.do(e, f[:])
	frames.Put(f)
	return err
}

// do is the only way to call the driver with a context. Nothing is called once
// the context is dead. args must be on the heap, see raw, and the caller keeps
// alive what it points to.
func (c *context) do(e entry, args []uintptr) error {
	if lost := c.lost.Load(); lost != nil {
		return *lost
	}
	failed, r := c.enter(e, args)
	if r == 0 {
		return nil
	}
	return c.fail(failed, r)
}

// enter makes the context current on a thread and makes the call there. The
// first result tells which of the two calls the second result is from. The
// context stays current on the thread: the next caller sets its own.
func (c *context) enter(e entry, args []uintptr) (entry, result) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r := c.driver.raw(cuCtxSetCurrent, c.handle[:]); r != 0 {
		return cuCtxSetCurrent, r
	}
	return e, c.driver.raw(e, args)
}

// synchronize waits for all work in the context.
func (c *context) synchronize() error {
	c.capture.RLock()
	defer c.capture.RUnlock()
	return c.call(cuCtxSynchronize)
}

// clean calls a function that gives back memory of the process rather than of
// the context: on a lost device, too, where whatever it returns is ignored.
//
//go:uintptrescapes
func (c *context) clean(e entry, args ...uintptr) error {
	if c.lost.Load() != nil {
		c.driver.raw(e, args)
		return nil
	}
	return c.do(e, args)
}

// fail returns the error of a call, and marks the context dead if it is.
func (c *context) fail(e entry, r result) error {
	f := c.driver.failure(e, r)
	if _, dead := r.meaning(); dead {
		// %v: for errors.Is, a lost device is not a failed launch.
		lost := fmt.Errorf("%w, earlier: %v", device.ErrLost, f)
		c.lost.CompareAndSwap(nil, &lost)
	}
	return f
}
