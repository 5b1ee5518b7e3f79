//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
	"github.com/pando-index/pando/internal/device"
)

// entry names one function of the driver library.
type entry int

const (
	cuInit entry = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString

	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetAttribute
	cuDeviceTotalMem

	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxSynchronize
	cuCtxSetLimit
	cuCtxResetPersistingL2Cache

	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemsetD32Async

	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuLaunchKernel

	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuStreamSetAttribute

	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuEventElapsedTime

	// The following may be missing, see optional.

	cuMemAddressReserve
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuMemGetAllocationGranularity

	cuStreamBeginCapture
	cuStreamEndCapture
	cuGraphInstantiate
	cuGraphLaunch
	cuGraphDestroy
	cuGraphExecDestroy

	entryCount
)

// optional reports whether a driver without this function is good enough for
// everything else. has tells whether it is there.
func (e entry) optional() bool { return e >= cuMemAddressReserve }

// symbols are the names in the library, in the versions of CUDA 11.0, the
// first that accepts the PTX we generate, unless something else is said. Later
// drivers still export them.
var symbols = [entryCount]string{
	cuInit:             "cuInit",
	cuDriverGetVersion: "cuDriverGetVersion",
	cuGetErrorName:     "cuGetErrorName",
	cuGetErrorString:   "cuGetErrorString",

	cuDeviceGetCount:     "cuDeviceGetCount",
	cuDeviceGet:          "cuDeviceGet",
	cuDeviceGetName:      "cuDeviceGetName",
	cuDeviceGetAttribute: "cuDeviceGetAttribute",
	cuDeviceTotalMem:     "cuDeviceTotalMem_v2",

	cuDevicePrimaryCtxRetain:    "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease:   "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent:             "cuCtxSetCurrent",
	cuCtxSynchronize:            "cuCtxSynchronize",
	cuCtxSetLimit:               "cuCtxSetLimit",
	cuCtxResetPersistingL2Cache: "cuCtxResetPersistingL2Cache",

	cuMemGetInfo:        "cuMemGetInfo_v2",
	cuMemAlloc:          "cuMemAlloc_v2",
	cuMemFree:           "cuMemFree_v2",
	cuMemHostAlloc:      "cuMemHostAlloc",
	cuMemFreeHost:       "cuMemFreeHost",
	cuMemHostRegister:   "cuMemHostRegister_v2",
	cuMemHostUnregister: "cuMemHostUnregister",
	cuMemcpyHtoDAsync:   "cuMemcpyHtoDAsync_v2",
	cuMemcpyDtoHAsync:   "cuMemcpyDtoHAsync_v2",
	cuMemcpyDtoDAsync:   "cuMemcpyDtoDAsync_v2",
	cuMemsetD32Async:    "cuMemsetD32Async",

	cuModuleLoadDataEx:                          "cuModuleLoadDataEx",
	cuModuleUnload:                              "cuModuleUnload",
	cuModuleGetFunction:                         "cuModuleGetFunction",
	cuFuncGetAttribute:                          "cuFuncGetAttribute",
	cuFuncSetAttribute:                          "cuFuncSetAttribute",
	cuOccupancyMaxActiveBlocksPerMultiprocessor: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
	cuLaunchKernel:                              "cuLaunchKernel",

	cuStreamCreate:       "cuStreamCreate",
	cuStreamDestroy:      "cuStreamDestroy_v2",
	cuStreamSynchronize:  "cuStreamSynchronize",
	cuStreamWaitEvent:    "cuStreamWaitEvent",
	cuStreamSetAttribute: "cuStreamSetAttribute",

	cuEventCreate:      "cuEventCreate",
	cuEventDestroy:     "cuEventDestroy_v2",
	cuEventRecord:      "cuEventRecord",
	cuEventSynchronize: "cuEventSynchronize",
	cuEventElapsedTime: "cuEventElapsedTime",

	cuMemAddressReserve:           "cuMemAddressReserve",
	cuMemAddressFree:              "cuMemAddressFree",
	cuMemCreate:                   "cuMemCreate",
	cuMemRelease:                  "cuMemRelease",
	cuMemMap:                      "cuMemMap",
	cuMemUnmap:                    "cuMemUnmap",
	cuMemSetAccess:                "cuMemSetAccess",
	cuMemGetAllocationGranularity: "cuMemGetAllocationGranularity",

	cuStreamBeginCapture: "cuStreamBeginCapture_v2",
	cuStreamEndCapture:   "cuStreamEndCapture",
	cuGraphInstantiate:   "cuGraphInstantiateWithFlags", // of CUDA 11.4
	cuGraphLaunch:        "cuGraphLaunch",
	cuGraphDestroy:       "cuGraphDestroy",
	cuGraphExecDestroy:   "cuGraphExecDestroy",
}

func (e entry) String() string { return symbols[e] }

// driver is the loaded library: the addresses of its functions, and the
// contexts of this process. Tests put addresses of their own into it.
type driver struct {
	address [entryCount]uintptr

	mu       sync.Mutex
	contexts map[int]*context // by ordinal; those in use
}

// library loads the driver on first use and keeps the result, be it an error:
// a driver does not appear while a process runs.
var library = sync.OnceValues(func() (*driver, error) { return load("libcuda.so.1") })

func load(name string) (*driver, error) {
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", device.ErrNoDriver, err)
	}
	d := &driver{contexts: map[int]*context{}}
	for e := range entryCount {
		if d.address[e], err = purego.Dlsym(lib, symbols[e]); err != nil && !e.optional() {
			return nil, fmt.Errorf("%w: %s is too old (CUDA 11.0 is the least): %v", device.ErrNoDriver, name, err)
		}
	}
	return d, d.init()
}

// has returns an error that wraps device.ErrUnsupported if one of the optional
// functions from first to last is missing.
func (d *driver) has(first, last entry) error {
	for e := first; e <= last; e++ {
		if d.address[e] == 0 {
			return fmt.Errorf("%w: the driver is too old, it has no %v", device.ErrUnsupported, e)
		}
	}
	return nil
}

// init initializes the driver. If it fails, the machine has no GPU or its
// driver cannot run; neither means that a GPU was lost.
func (d *driver) init() error {
	r := d.raw(cuInit, make([]uintptr, 1)) // no flags
	switch kind, _ := r.meaning(); {
	case r == 0:
		return nil
	case errors.Is(kind, device.ErrNoGPU):
		return d.failure(cuInit, r)
	default:
		return fmt.Errorf("%w: %v", device.ErrNoDriver, d.failure(cuInit, r))
	}
}

// raw calls the driver on the current thread. args must be on the heap,
// because SyscallN makes its arguments escape: a list on the stack would be
// copied to the heap at every call.
func (d *driver) raw(e entry, args []uintptr) result {
	r, _, _ := purego.SyscallN(d.address[e], args...)
	return result(uint32(r)) // an int in C: the upper half is undefined
}

// call is for functions that need no context.
//
//go:uintptrescapes
func (d *driver) call(e entry, args ...uintptr) error {
	if r := d.raw(e, args); r != 0 {
		return d.failure(e, r)
	}
	return nil
}
