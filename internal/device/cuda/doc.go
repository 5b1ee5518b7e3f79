// Package cuda drives NVIDIA GPUs through the driver library, libcuda.so.1,
// from plain Go: it needs no cgo, no toolkit, and nothing else at build time.
// The library is looked up at run time, and a machine without it is a normal
// machine: Devices and Open then return an error that wraps
// device.ErrNoDriver. With the build tag nogpu, and on every platform but
// Linux on amd64 and arm64, the same functions exist but always return that
// error.
//
// # Threads
//
// The driver keeps a current context for each operating system thread, and
// goroutines move between threads. So every call locks its goroutine to a
// thread, makes the device's context current and then calls the driver; all of
// this happens in context.enter, and nowhere else. Any goroutine may use
// anything at any time.
//
// # Graphs
//
// A chain is first written down in Go (device.Record), without the driver.
// Then a stream of its own is captured while the chain is replayed into it: in
// the relaxed mode, the only one that neither ties a capture to a thread nor
// makes calls of others fail, and under a lock (context.capture) that keeps
// anyone from waiting for the whole context, which the driver still refuses
// while a capture is under way. No code of the caller runs under that lock.
//
// # Lifetimes
//
// Streams, events and modules wait for the calls that are using them before
// they are destroyed, and later calls return an error. Closing a device does
// the same for everything it holds. Memory is different: a slice from
// HostAlloc must not be touched after HostFree or Close, like any memory that
// is not managed by Go.
//
// # Lost devices
//
// Some errors (an illegal address in a kernel, an uncorrectable memory error)
// end a context: the driver answers every later call with the same error. The
// call that meets such an error reports it as what it is, usually
// device.ErrLaunchFailed; every later call returns device.ErrLost, without
// calling the driver. Only the memory of ranges is not freed with a context, so
// Close calls the driver to free it. The context belongs to the process, so every Device
// opened on that GPU is lost with it. Once all of them are closed, Open starts
// afresh.
package cuda
