// Package device defines the interface of a GPU to the layers above: memory,
// streams, events and launches. Package cuda drives real GPUs through the
// NVIDIA driver; package ptx interprets the same kernels on any machine. The
// layers above cannot tell which one they have, except by asking its name.
package device

import (
	"errors"
	"fmt"
)

// The errors of a device, for errors.Is. Errors wrap one of these and add what
// happened.
var (
	ErrNoDriver     = errors.New("device: no GPU driver on this machine")
	ErrNoDevice     = errors.New("device: no such GPU")
	ErrOutOfMemory  = errors.New("device: out of device memory")
	ErrLaunchFailed = errors.New("device: kernel failed")
	ErrLost         = errors.New("device: GPU lost")
	ErrBadKernel    = errors.New("device: kernel code not accepted")
	ErrUnsupported  = errors.New("device: not supported by this GPU or its driver")
)

// ErrNoGPU is the error of a machine that has a driver and no GPU, or none that this
// process may see. It is also ErrNoDevice, which says that there is none of a number.
var ErrNoGPU = fmt.Errorf("%w: the driver sees none", ErrNoDevice)

// Ptr is an address in a device's memory. 0 is no address.
type Ptr uint64

// Aligned returns the next multiple of 256, so that arrays one behind the other in
// one piece of memory begin as those that Alloc returns.
func Aligned(bytes int) int { return (bytes + 255) &^ 255 }

// AllocMore returns device memory, and its size: a quarter more than bytes, so
// that memory that grows little by little is seldom allocated anew, which takes
// longer than a small batch; or just as many, where there is no more.
func AllocMore(d Device, bytes int) (at Ptr, room int, err error) {
	room = Aligned(bytes + bytes/4)
	at, err = d.Alloc(room)
	if errors.Is(err, ErrOutOfMemory) {
		room = bytes
		at, err = d.Alloc(bytes)
	}
	return at, room, err
}

// Info describes a device.
type Info struct {
	Name       string // "NVIDIA H200", "PTX interpreter"
	Driver     string // driver version, for people to read
	Capability int    // compute capability as 10*major+minor: 90 for 9.0
	Processors int    // multiprocessors
	L2Bytes    int64
	TotalBytes int64 // total device memory
}

// Device is one GPU. All its methods, and those of the objects it makes, may
// be called from any goroutine.
type Device interface {
	Info() Info
	// FreeBytes returns approximately how much memory Alloc could still
	// return.
	FreeBytes() (int64, error)

	// Alloc returns device memory, aligned to 256 bytes, with undefined
	// content.
	Alloc(bytes int) (Ptr, error)
	Free(Ptr) error
	// Reserve returns addresses for at most bytes of memory. None of it is
	// there yet: Range.Grow adds it. Where the GPU or its driver cannot do that,
	// the error wraps ErrUnsupported; the caller then takes the most it may need
	// by Alloc.
	Reserve(bytes int64) (Range, error)
	// ReserveHost is Reserve for page-locked host memory, which kernels read and
	// write where it is, over the bus. It takes none of the GPU's memory.
	ReserveHost(bytes int64) (HostRange, error)

	// HostAlloc returns page-locked host memory, which is the fastest to copy
	// from and to.
	HostAlloc(bytes int) ([]byte, error)
	HostFree([]byte) error
	// Register page-locks existing memory (an arena, not Go heap memory);
	// Unregister undoes it.
	Register([]byte) error
	Unregister([]byte) error

	// Load makes the kernels of a PTX text ready to run. Its error includes
	// the driver's own messages.
	Load(ptx string) (Module, error)
	NewStream() (Stream, error)
	NewEvent() (Event, error)
	// NewGraph records a chain of operations, which Stream.Start then starts by
	// one call, as often as needed. It calls chain once, with a Stream that
	// takes launches, fills and copies and carries none of them out; anything
	// else is an error there. Host memory in the chain must be page-locked, and
	// all memory must stay where it is until the graph is closed: its contents
	// may change between starts. Where the driver has no graphs, the error wraps
	// ErrUnsupported; the caller then calls chain with its stream each time.
	NewGraph(chain func(Stream) error) (Graph, error)

	// Close frees everything the device still holds for this process.
	Close() error
}

// Range is memory that grows in place: its address never changes, so pointers
// into it, and kernels that are reading it, stay valid. Memory beyond Len must
// not be touched.
type Range interface {
	// Base returns the first address, aligned to 256 bytes.
	Base() Ptr
	// Len returns how many bytes are there.
	Len() int64
	// Grow makes the range at least bytes long. The content of those that are
	// new is undefined; the others keep theirs. Beyond the reserved length, the
	// error wraps ErrOutOfMemory as it does if the device has no more. An error
	// leaves the range as it was.
	Grow(bytes int64) error
	// Free returns the memory and the addresses.
	Free() error
}

// HostRange is a Range of host memory. Its addresses are for kernels: the host copies
// from and to Bytes.
type HostRange interface {
	Range
	// Bytes returns all that is there as the host sees it, until Grow is called. A copy
	// of a stream from or to it must lie within the bytes that one Grow has added.
	Bytes() []byte
}

// Graph is a chain of launches, fills and copies that Device.NewGraph has
// recorded.
type Graph interface {
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

// Grid is the shape of a launch, in one dimension: the number of blocks,
// threads per block, and bytes of dynamic shared memory per block.
type Grid struct {
	Blocks, Threads, Shared int
}

// Stream is a queue of work on a device. Work is done in order, while the
// caller continues. Host memory given to a copy must stay unchanged until the
// stream has been synchronized past the copy.
type Stream interface {
	CopyIn(dst Ptr, src []byte) error
	CopyOut(dst []byte, src Ptr) error
	CopyDevice(dst, src Ptr, bytes int) error
	// Fill sets bytes (a multiple of 4) to a repeated 32-bit value.
	Fill(dst Ptr, value uint32, bytes int) error
	// Launch queues a kernel. params is the kernel's parameter block, laid out
	// as in PTX: each parameter at its natural alignment. It is read before
	// Launch returns.
	Launch(k Kernel, g Grid, params []byte) error
	// Start queues all operations of a graph, in their order. Persist has no
	// effect on its kernels. Starts of the same graph in several streams may
	// wait for each other.
	Start(Graph) error
	Record(Event) error
	// Wait makes later work in this stream wait for the event.
	Wait(Event) error
	// Synchronize blocks until all work queued so far is done, and returns the
	// first error of that work.
	Synchronize() error
	Close() error
}

// Persister is a Stream of a GPU whose cache can keep a given range.
type Persister interface {
	// Persistable returns the number of bytes that it can keep at most; 0 for
	// none.
	Persistable() int
	// Persist asks that lines of a range that kernels of the stream read stay
	// in the cache. A range of 0 bytes ends this, for the whole device.
	Persist(base Ptr, bytes int) error
}

// Event is a mark in a stream.
type Event interface {
	Synchronize() error
	// Since returns the milliseconds from an earlier recorded event to this
	// one.
	Since(earlier Event) (float64, error)
	Close() error
}
