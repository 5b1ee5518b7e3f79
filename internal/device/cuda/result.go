//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// errClosed is the error of calls after an object or its device was closed.
var errClosed = errors.New("cuda: already closed")

// result is the result of every function of the driver; 0 is success.
type result uint32

// meaning returns the sentinel that a result stands for, nil if that depends
// on the call, and reports whether the context is dead from here on. A context
// is dead if the driver's manual says so about the error; 701 (too many resources
// requested) is a launch that never began, and harms nothing.
func (r result) meaning() (kind error, dead bool) {
	switch r {
	case 2: // OUT_OF_MEMORY
		return device.ErrOutOfMemory, false
	case 3, 34, 803, 804: // NOT_INITIALIZED, STUB_LIBRARY, SYSTEM_DRIVER_MISMATCH, COMPAT_NOT_SUPPORTED_ON_DEVICE
		return device.ErrNoDriver, false
	case 100: // NO_DEVICE
		return device.ErrNoGPU, false
	case 101: // INVALID_DEVICE
		return device.ErrNoDevice, false
	case 4, // DEINITIALIZED
		46,       // DEVICE_UNAVAILABLE
		201, 709, // INVALID_CONTEXT, CONTEXT_IS_DESTROYED: reset by something else in the process
		214, 220, // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE
		226, // CONTAINED: a hardware fault contained to this process
		802, // SYSTEM_NOT_READY
		999: // UNKNOWN
		return device.ErrLost, true
	case 200, 209, 218, // INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX
		221, 222, 223, // JIT_COMPILER_NOT_FOUND, UNSUPPORTED_PTX_VERSION, JIT_COMPILATION_DISABLED
		225, 300: // UNSUPPORTED_DEVSIDE_SYNC, INVALID_SOURCE
		return device.ErrBadKernel, false
	case 801: // NOT_SUPPORTED
		return device.ErrUnsupported, false
	case 701, 720: // LAUNCH_OUT_OF_RESOURCES, COOPERATIVE_LAUNCH_TOO_LARGE
		return device.ErrLaunchFailed, false
	case 700, 702, 710, // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT
		714, 715, 716, // HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS
		717, 718, 719, // INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED
		721: // TENSOR_MEMORY_LEAK
		return device.ErrLaunchFailed, true
	}
	return nil, false
}

// blame returns the sentinel for a failure of this function whose result has
// no meaning of its own, such as INVALID_VALUE, or nil if there is none.
func (e entry) blame() error {
	switch e {
	case cuLaunchKernel, cuFuncSetAttribute, cuStreamBeginCapture, cuStreamEndCapture, cuGraphInstantiate, cuGraphLaunch:
		return device.ErrLaunchFailed
	case cuModuleLoadDataEx, cuModuleGetFunction:
		return device.ErrBadKernel
	}
	return nil
}

// failure is an error of the driver, in its own words.
type failure struct {
	entry      entry
	result     result
	name, text string // the driver's own; empty if it has none
	log        string // messages of the JIT compiler
	kind       error  // a sentinel of package device, or nil
}

func (f *failure) Error() string {
	var b strings.Builder
	if f.kind != nil {
		fmt.Fprintf(&b, "%v: ", f.kind)
	} else {
		b.WriteString("cuda: ")
	}
	fmt.Fprintf(&b, "%v gave %d", f.entry, f.result)
	if f.name != "" {
		fmt.Fprintf(&b, " %s, %s", f.name, f.text)
	}
	if f.log != "" {
		fmt.Fprintf(&b, "\n%s", f.log)
	}
	return b.String()
}

func (f *failure) Unwrap() error { return f.kind }

func (d *driver) failure(e entry, r result) *failure {
	f := &failure{entry: e, result: r, name: d.describe(cuGetErrorName, r), text: d.describe(cuGetErrorString, r)}
	if f.kind, _ = r.meaning(); f.kind == nil {
		f.kind = e.blame()
	}
	return f
}

// describe asks the driver for one of its two texts about a result.
func (d *driver) describe(e entry, r result) string {
	var text *byte
	if d.quiet(e, uintptr(r), uintptr(unsafe.Pointer(&text))) != 0 || text == nil {
		return ""
	}
	const limit = 1 << 10 // far above the length of any driver text
	n := 0
	for n < limit && *(*byte)(unsafe.Add(unsafe.Pointer(text), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(text, n))
}

// quiet is call for functions that report errors themselves.
//
//go:uintptrescapes
func (d *driver) quiet(e entry, args ...uintptr) result { return d.raw(e, args) }
