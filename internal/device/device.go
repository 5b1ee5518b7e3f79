// Package device says what a GPU is to the floors above: memory, streams,
// events and launches. Package cuda drives real ones through the NVIDIA
// driver; package ptx interprets the same kernels on any machine. Nothing
// above can tell which one it has, except by asking its name.
package device

import "errors"

// What can go wrong, for errors.Is. Errors of a device wrap one of these and
// add what happened.
var (
	ErrNoDriver     = errors.New("device: no GPU driver on this machine")
	ErrNoDevice     = errors.New("device: no such GPU")
	ErrOutOfMemory  = errors.New("device: out of device memory")
	ErrLaunchFailed = errors.New("device: kernel failed")
	ErrLost         = errors.New("device: GPU lost")
	ErrBadKernel    = errors.New("device: kernel code not accepted")
)

// Ptr is an address in a device's memory. 0 is no address.
type Ptr uint64

// Info describes a device.
type Info struct {
	Name       string // "NVIDIA H200", "PTX interpreter"
	Driver     string // driver version, for people
	Capability int    // compute capability as 10*major+minor: 90 for 9.0
	Processors int    // multiprocessors
	L2Bytes    int64
	TotalBytes int64 // device memory in all
}

// Device is one GPU. All its methods, and those of what it makes, may be
// called from any goroutine.
type Device interface {
	Info() Info
	// FreeBytes is the memory that Alloc could still give, about.
	FreeBytes() (int64, error)

	// Alloc gives device memory, aligned to 256 bytes, content undefined.
	Alloc(bytes int) (Ptr, error)
	Free(Ptr) error

	// HostAlloc gives page-locked host memory, which copies run fastest from and to.
	HostAlloc(bytes int) ([]byte, error)
	HostFree([]byte) error
	// Register page-locks memory that is already there (an arena, not Go heap
	// memory); Unregister undoes it.
	Register([]byte) error
	Unregister([]byte) error

	// Load makes the kernels of a PTX text ready to run. The driver's own
	// messages are part of the error.
	Load(ptx string) (Module, error)
	NewStream() (Stream, error)
	NewEvent() (Event, error)

	// Close frees everything the device still holds for this process.
	Close() error
}

// Module is loaded code.
type Module interface {
	Kernel(name string) (Kernel, error)
	Unload() error
}

// Kernel is one entry point of a module.
type Kernel interface {
	Name() string
}

// Grid is the shape of a launch, in one dimension: blocks of threads, and
// bytes of dynamic shared memory a block.
type Grid struct {
	Blocks, Threads, Shared int
}

// Stream is a queue of work on a device: done in order, while the caller goes
// on. Host memory given to a copy must stay as it is until the stream has
// been synchronised past it.
type Stream interface {
	CopyIn(dst Ptr, src []byte) error
	CopyOut(dst []byte, src Ptr) error
	CopyDevice(dst, src Ptr, bytes int) error
	// Fill sets bytes (a multiple of 4) to a repeated 32-bit value.
	Fill(dst Ptr, value uint32, bytes int) error
	// Launch queues a kernel. params is the kernel's parameter block, laid out
	// as PTX lays it out: each parameter at its natural alignment. It is read
	// before Launch returns.
	Launch(k Kernel, g Grid, params []byte) error
	Record(Event) error
	// Wait makes later work in this stream wait for the event.
	Wait(Event) error
	// Synchronize blocks until all work queued so far is done, and gives the
	// first error of that work.
	Synchronize() error
	Close() error
}

// Persister is a Stream of a GPU whose cache can be told what to keep.
type Persister interface {
	// Persistable is the most bytes that it can keep; 0 for none.
	Persistable() int
	// Persist asks that what kernels of the stream read in a range stays in the
	// cache. No bytes end it, for the whole device.
	Persist(base Ptr, bytes int) error
}

// Event is a mark in a stream.
type Event interface {
	Synchronize() error
	// Since gives the milliseconds from an earlier recorded event to this one.
	Since(earlier Event) (float64, error)
	Close() error
}
