//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/pando-index/pando/internal/device"
)

// fakeStaticShared is the static shared memory of every kernel of the fake.
const fakeStaticShared = 1 << 10

// fakeMostShared is the maximum dynamic shared memory that the fake grants.
const fakeMostShared = 200 << 10

var errorName = append([]byte("CUDA_ERROR_FAKE"), 0)

// fakeAddresses are the entry points of the fake, made once.
var fakeAddresses = sync.OnceValue(func() (a [entryCount]uintptr) {
	for e, f := range fakeFunctions() {
		a[e] = purego.NewCallback(f)
	}
	return a
})

func fakeFunctions() [entryCount]any {
	all := [entryCount]any{
		cuMemFree: destroy(cuMemFree), cuMemFreeHost: destroy(cuMemFreeHost),
		cuMemHostUnregister: destroy(cuMemHostUnregister), cuModuleUnload: destroy(cuModuleUnload),
		cuStreamDestroy: destroy(cuStreamDestroy), cuEventDestroy: destroy(cuEventDestroy),
		cuGraphDestroy: destroy(cuGraphDestroy), cuGraphExecDestroy: destroy(cuGraphExecDestroy),
	}
	for _, add := range []func(*[entryCount]any){addGlobal, addContext, addMemory, addCopies, addCode, addLaunch, addStreams, addRanges, addPhysical, addMapping, addGraphs} {
		add(&all)
	}
	return all
}

func addGlobal(all *[entryCount]any) {
	all[cuInit] = func(uintptr) uintptr {
		return serve(cuInit, func(f *fake) result {
			if f.gpus == 0 {
				return 100
			}
			return 0
		})
	}
	all[cuDriverGetVersion] = func(v *int32) uintptr {
		return serve(cuDriverGetVersion, func(*fake) result { *v = 12040; return 0 })
	}
	name := func(r uintptr, text **byte) uintptr {
		if *text = nil; r == 12345 {
			return 1
		}
		*text = &errorName[0]
		return 0
	}
	all[cuGetErrorName], all[cuGetErrorString] = name, name
	all[cuDeviceGetCount] = func(n *int32) uintptr {
		return serve(cuDeviceGetCount, func(f *fake) result { *n = int32(f.gpus); return 0 })
	}
	all[cuDeviceGet] = func(gpu *int32, ordinal int32) uintptr {
		return serve(cuDeviceGet, func(f *fake) result {
			if ordinal < 0 || int(ordinal) >= f.gpus {
				return 101
			}
			*gpu = ordinal
			return 0
		})
	}
	all[cuDeviceGetName] = func(name *byte, n int32, gpu int32) uintptr {
		return serve(cuDeviceGetName, func(*fake) result {
			copy(unsafe.Slice(name, n), "Fake GPU\x00")
			return 0
		})
	}
	all[cuDeviceTotalMem] = func(total *uint64, gpu int32) uintptr {
		return serve(cuDeviceTotalMem, func(*fake) result { *total = 1 << 30; return 0 })
	}
	all[cuDeviceGetAttribute] = func(v *int32, attribute uintptr, gpu int32) uintptr {
		return serve(cuDeviceGetAttribute, func(f *fake) result {
			*v = map[uintptr]int32{attrVirtualMemory: f.mapper.able, attrSameAddresses: f.mapper.able, attrMajor: 9, attrMinor: 0, attrProcessors: 132, attrL2Bytes: 50 << 20,
				attrPersistingL2Bytes: 30 << 20, attrAccessWindowBytes: 128 << 20}[attribute]
			return 0
		})
	}
}

func addContext(all *[entryCount]any) {
	all[cuDevicePrimaryCtxRetain] = func(out *uintptr, gpu int32) uintptr {
		return serve(cuDevicePrimaryCtxRetain, func(f *fake) result { return f.retain(out, int(gpu)) })
	}
	all[cuDevicePrimaryCtxRelease] = func(gpu int32) uintptr {
		return serve(cuDevicePrimaryCtxRelease, func(f *fake) result { return f.release(int(gpu)) })
	}
	all[cuCtxSetCurrent] = func(c uintptr) uintptr {
		return serve(cuCtxSetCurrent, func(f *fake) result {
			if !f.alive(c) {
				f.wrong("a dead context was made current: %#x", c)
			}
			f.current[syscall.Gettid()] = c
			return 0
		})
	}
	all[cuCtxSynchronize] = func() uintptr {
		return serveIn(cuCtxSynchronize, func(f *fake, c uintptr) result {
			for stream := range f.capturer.streams {
				if f.live[stream].context == c {
					f.wrong("the context is waited for during a capture")
					return 900
				}
			}
			return 0
		})
	}
	all[cuCtxSetLimit] = func(limit, v uintptr) uintptr {
		return serveIn(cuCtxSetLimit, func(f *fake, _ uintptr) result {
			if limit != 6 || v == 0 || v > 30<<20 {
				f.wrong("limit %d set to %d", limit, v)
			}
			return 0
		})
	}
	all[cuCtxResetPersistingL2Cache] = func() uintptr {
		return serveIn(cuCtxResetPersistingL2Cache, func(*fake, uintptr) result { return 0 })
	}
}

func addMemory(all *[entryCount]any) {
	all[cuMemGetInfo] = func(free, total *uint64) uintptr {
		return serveIn(cuMemGetInfo, func(f *fake, _ uintptr) result {
			*free, *total = 1<<29-uint64(f.mapper.used), 1<<30
			return 0
		})
	}
	all[cuMemAlloc] = func(out *uintptr, n uintptr) uintptr {
		return serveIn(cuMemAlloc, func(f *fake, c uintptr) result {
			if n > 1<<30 {
				return 2
			}
			return f.make(c, cuMemFree, out, make([]byte, n))
		})
	}
	all[cuMemHostAlloc] = func(out **byte, n, flags uintptr) uintptr {
		return serveIn(cuMemHostAlloc, func(f *fake, c uintptr) result {
			b := make([]byte, n)
			*out = &b[0]
			f.live[start(b)] = thing{cuMemFreeHost, c, b}
			return 0
		})
	}
	all[cuMemHostRegister] = func(p *byte, n, flags uintptr) uintptr {
		return serveIn(cuMemHostRegister, func(f *fake, c uintptr) result {
			b := unsafe.Slice(p, n)
			if _, ok := f.live[start(b)]; ok {
				return 712
			}
			f.live[start(b)] = thing{cuMemHostUnregister, c, b}
			return 0
		})
	}
}

func addCopies(all *[entryCount]any) {
	all[cuMemcpyHtoDAsync] = func(dst uintptr, src *byte, n, stream uintptr) uintptr {
		return serveIn(cuMemcpyHtoDAsync, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			return f.queue(stream, func() result { return f.copy(f.memory(dst, n), unsafe.Slice(src, n)) })
		})
	}
	all[cuMemcpyDtoHAsync] = func(dst *byte, src, n, stream uintptr) uintptr {
		return serveIn(cuMemcpyDtoHAsync, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			return f.queue(stream, func() result { return f.copy(unsafe.Slice(dst, n), f.memory(src, n)) })
		})
	}
	all[cuMemcpyDtoDAsync] = func(dst, src, n, stream uintptr) uintptr {
		return serveIn(cuMemcpyDtoDAsync, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			return f.queue(stream, func() result { return f.copy(f.memory(dst, n), f.memory(src, n)) })
		})
	}
	all[cuMemsetD32Async] = func(dst uintptr, v uint32, n, stream uintptr) uintptr {
		return serveIn(cuMemsetD32Async, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			word := []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}
			return f.queue(stream, func() result { return f.copy(f.memory(dst, 4*n), bytes.Repeat(word, int(n))) })
		})
	}
}

// jitValues is the option values of package cuda, as C sees them.
type jitValues struct {
	said        *byte
	saidBytes   uintptr
	failed      *byte
	failedBytes uintptr
}

func addCode(all *[entryCount]any) {
	all[cuModuleLoadDataEx] = func(out *uintptr, image *byte, n uintptr, options *[4]int32, values *jitValues) uintptr {
		return serveIn(cuModuleLoadDataEx, func(f *fake, c uintptr) result {
			if n != 4 || *options != [4]int32{3, 4, 5, 6} {
				f.wrong("JIT options %v", *options)
			}
			if *image == '!' {
				copy(unsafe.Slice(values.failed, values.failedBytes), "line 1; fatal: no !\n")
				copy(unsafe.Slice(values.said, values.saidBytes), bytes.Repeat([]byte("x"), int(values.saidBytes)))
				return 218
			}
			return f.make(c, cuModuleUnload, out, nil)
		})
	}
	all[cuModuleGetFunction] = func(out *uintptr, module uintptr, name *byte) uintptr {
		return serveIn(cuModuleGetFunction, func(f *fake, c uintptr) result {
			f.own(module, cuModuleUnload, c)
			if *name == '?' {
				return 500
			}
			*out = module + uintptr(*name)
			return 0
		})
	}
	all[cuFuncGetAttribute] = func(v *int32, attribute, function uintptr) uintptr {
		return serveIn(cuFuncGetAttribute, func(*fake, uintptr) result { *v = fakeStaticShared; return 0 })
	}
	all[cuFuncSetAttribute] = func(function, attribute, v uintptr) uintptr {
		return serveIn(cuFuncSetAttribute, func(f *fake, _ uintptr) result {
			if attribute != funcMaxDynamicBytes || v > fakeMostShared {
				return 1
			}
			f.shared[function] = int(v)
			return 0
		})
	}
	all[cuOccupancyMaxActiveBlocksPerMultiprocessor] = func(out *int32, function uintptr, threads int32, shared uintptr) uintptr {
		return serveIn(cuOccupancyMaxActiveBlocksPerMultiprocessor, func(*fake, uintptr) result {
			*out = 2048 / threads
			return 0
		})
	}
}

// launchExtra is the array of tags and values, as C sees it.
type launchExtra struct {
	tag1   uintptr
	params *byte
	tag2   uintptr
	bytes  *uintptr
	end    uintptr
}

func addLaunch(all *[entryCount]any) {
	all[cuLaunchKernel] = func(function, gx, gy, gz, bx, by, bz, shared, stream, params uintptr, extra *launchExtra) uintptr {
		return serveIn(cuLaunchKernel, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			f.own(function&^0xff, cuModuleUnload, c)
			if gy*gz*by*bz != 1 || params != 0 || bx > 1024 {
				return 1
			}
			if int(shared)+fakeStaticShared > plainShared && int(shared) > f.shared[function] {
				return 1
			}
			l := launched{function, stream, device.Grid{Blocks: int(gx), Threads: int(bx), Shared: int(shared)}, nil}
			if extra != nil {
				if extra.tag1 != 1 || extra.tag2 != 2 || extra.end != 0 {
					f.wrong("launch tags %+v", *extra)
				}
				l.params = bytes.Clone(unsafe.Slice(extra.params, *extra.bytes))
			}
			return f.queue(stream, func() result {
				f.own(function&^0xff, cuModuleUnload, c)
				f.last = l
				f.launches++
				return 0
			})
		})
	}
}

func addStreams(all *[entryCount]any) {
	create := func(e, freedBy entry, flags uintptr) func(*uintptr, uintptr) uintptr {
		return func(out *uintptr, got uintptr) uintptr {
			return serveIn(e, func(f *fake, c uintptr) result {
				if got != flags {
					f.wrong("%v with flags %d", e, got)
				}
				return f.make(c, freedBy, out, nil)
			})
		}
	}
	all[cuStreamCreate] = create(cuStreamCreate, cuStreamDestroy, 1)
	all[cuEventCreate] = create(cuEventCreate, cuEventDestroy, 0)
	all[cuStreamSynchronize] = wait(cuStreamSynchronize, cuStreamDestroy)
	all[cuEventSynchronize] = wait(cuEventSynchronize, cuEventDestroy)
	all[cuStreamWaitEvent] = func(stream, event, flags uintptr) uintptr {
		return serveIn(cuStreamWaitEvent, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			f.own(event, cuEventDestroy, c)
			return 0
		})
	}
	all[cuEventRecord] = func(event, stream uintptr) uintptr {
		return serveIn(cuEventRecord, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			f.own(event, cuEventDestroy, c)
			return 0
		})
	}
	all[cuEventElapsedTime] = func(ms *float32, begin, end uintptr) uintptr {
		return serveIn(cuEventElapsedTime, func(f *fake, c uintptr) result {
			f.own(begin, cuEventDestroy, c)
			f.own(end, cuEventDestroy, c)
			*ms = float32(int64(end - begin))
			return 0
		})
	}
	all[cuStreamSetAttribute] = func(stream, attribute uintptr, w *accessWindow) uintptr {
		return serveIn(cuStreamSetAttribute, func(f *fake, c uintptr) result {
			f.own(stream, cuStreamDestroy, c)
			if attribute != 1 || w.hitRatio < 0 || w.hitRatio > 1 || w.bytes > 128<<20 {
				f.wrong("attribute %d, window %+v", attribute, *w)
			}
			return 0
		})
	}
}

// wait returns a call that lets others run while it is inside, as the driver's
// own waiting does, and records whether its handle is destroyed meanwhile.
func wait(e, freedBy entry) func(uintptr) uintptr {
	return func(h uintptr) uintptr {
		return serveIn(e, func(f *fake, c uintptr) result {
			if !f.own(h, freedBy, c) {
				return 400
			}
			if f.capturer.streams[h] != nil {
				f.wrong("a stream is waited for during its capture")
				return 900
			}
			f.yield()
			f.own(h, freedBy, c)
			return 0
		})
	}
}

// yield lets others run, and call the fake.
func (f *fake) yield() {
	f.mu.Unlock()
	for range 10 {
		runtime.Gosched()
	}
	f.mu.Lock()
}
