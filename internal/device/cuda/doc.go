// Package cuda drives NVIDIA GPUs through the driver library, libcuda.so.1,
// from plain Go: no cgo, no toolkit, nothing needed to build. The library is
// looked for at run time, and a machine without it is a normal machine:
// Devices and Open then give an error that wraps device.ErrNoDriver. The build
// tag nogpu, and every platform but Linux on amd64 and arm64, leaves the
// package's contents out; the same functions are there and give the same error.
//
// # Threads
//
// The driver keeps a current context for each operating system thread, and
// goroutines move between threads. So every call locks its goroutine to a
// thread, makes the device's context current and then calls; all of it in
// context.enter, and nowhere else. Any goroutine may use anything at any time.
//
// # When things end
//
// Streams, events and modules wait for the calls that are using them before
// they are destroyed, and a call that comes later gets an error. Closing a
// device does the same for all it holds. Memory is different: a slice from
// HostAlloc must not be touched after HostFree or Close, as with any memory
// that is not Go's.
//
// # Lost devices
//
// Some errors (an illegal address in a kernel, an uncorrectable memory error)
// end a context: the driver answers every later call with the same error. The
// call that meets such an error reports it as what it is, mostly
// device.ErrLaunchFailed; each one after it gets device.ErrLost, without
// asking the driver. The context belongs to the process, so every Device opened
// on that GPU is lost with it. When all of them are closed, Open tries afresh.
package cuda
