// Package faulty wraps a device and makes it fail on purpose, so that tests
// can prove what happens then:
//
//	count := faulty.New(ptx.New(), faulty.Plan{}) // fails nothing, counts
//	work(count)
//	for n := range count.Count(faulty.Any) {
//		d := faulty.New(ptx.New(), faulty.Plan{At: n + 1})
//		work(d) // the answers are right all the same, and d.Live() is 0
//	}
//
// A failing operation is not carried out. Its output on the host is spoiled:
// the target of a failed CopyOut, those of a graph that failed to start, and
// after a failed Synchronize the target of every copy that it should have
// waited for. So a caller that overlooks the
// error gets wrong answers, never right ones by luck. After Synchronize has
// failed, none of that work is still running.
//
// A device can also lie (Plan.Lie): it reports success and has done nothing.
package faulty

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pando-index/pando/internal/device"
)

// Op is a kind of operation. Operations that free something (Free, Unload,
// Close) are not among them: they cannot be made to fail.
type Op uint8

const (
	Any Op = iota // any of those that follow
	Alloc
	HostAlloc
	Register
	Load
	Kernel // looking up a kernel in a module
	NewStream
	NewEvent
	CopyIn
	CopyOut
	CopyDevice
	Fill
	Launch
	Record
	Wait        // a stream waits for an event
	Synchronize // of a stream or an event; Since waits too and counts as one
	FreeBytes
	Reserve
	Grow     // of a range
	NewGraph // once its chain is recorded; the operations of the chain count, too
	Start    // of a graph, whatever is in it
	ReserveHost
	opCount
)

var opNames = [opCount]string{"any operation", "Alloc", "HostAlloc", "Register", "Load", "Kernel", "NewStream", "NewEvent",
	"CopyIn", "CopyOut", "CopyDevice", "Fill", "Launch", "Record", "Wait", "Synchronize", "FreeBytes",
	"Reserve", "Grow", "NewGraph", "Start", "ReserveHost"}

func (op Op) String() string {
	if op >= opCount {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return opNames[op]
}

// Ops returns every kind but Any.
func Ops() []Op {
	ops := make([]Op, 0, opCount-1)
	for op := Any + 1; op < opCount; op++ {
		ops = append(ops, op)
	}
	return ops
}

// kind returns the error that an operation fails with if the plan names none.
func (op Op) kind() error {
	switch op {
	case Alloc, HostAlloc, Register, NewStream, NewEvent, Reserve, Grow, NewGraph, ReserveHost:
		return device.ErrOutOfMemory
	case Load, Kernel:
		return device.ErrBadKernel
	}
	return device.ErrLaunchFailed
}

// Plan tells what fails. With the zero Plan nothing fails.
type Plan struct {
	Op Op
	// At is the number of the operation that fails, counted from 1 over all
	// operations of kind Op, on whatever stream, event or module. 0 means
	// none.
	At int
	// Times is how many fail, one after the other, from number At on: for callers
	// that try again with less. 0 means one.
	Times int
	// Err is what the error wraps; nil means the usual one for the operation.
	Err error
	// Lose makes the device lost with that operation: it and every later
	// operation fails with device.ErrLost, except that the operation itself
	// fails with Err if that is set, like a kernel error that ends a context.
	// Operations that free something still do so, but return device.ErrLost
	// too.
	Lose bool
	// Lie makes launches and copies to the host, of kind Op and from number At on,
	// report success all the same: kernels do not run, and copies are garbage, the
	// same for the same operations. Other operations work.
	Lie bool
}

// Device is a device that fails as planned. The faults are injected; the
// wrapped device keeps working, and its errors are passed on unchanged.
type Device struct {
	inner device.Device
	plan  Plan

	// running is held for reading by every operation, so that no operation is
	// half done when the device is lost.
	running sync.RWMutex
	drained sync.Once // on loss

	mu     sync.Mutex // guards the following, and all outputs
	counts [opCount]int
	lost   bool
	live   map[any]struct{} // block, *stream, *event, *module, *growRange, *graph
}

var _ device.Device = (*Device)(nil)

// New wraps a device. Closing the wrapper closes the device.
func New(d device.Device, p Plan) *Device {
	return &Device{inner: d, plan: p, live: map[any]struct{}{}}
}

// Lose makes the device lost: every operation from now on fails with device.ErrLost.
func (d *Device) Lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = true
}

// Count returns how many operations of a kind have been requested so far,
// including those that failed.
func (d *Device) Count(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// Live returns how many allocations, ranges, page-locked pieces of host memory,
// streams, events, graphs and modules have not been freed. Close frees them
// all.
func (d *Device) Live() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.live)
}

// do carries out an operation, unless it is the one to fail; then it calls
// spoil instead, which may be nil.
func (d *Device) do(op Op, act func() error, spoil func()) error {
	d.running.RLock()
	lost, err := d.decide(op)
	if err == nil {
		defer d.running.RUnlock()
		return act()
	}
	if err == errLie {
		err = nil
	}
	if spoil != nil {
		spoil()
	}
	d.running.RUnlock()
	if lost {
		d.drained.Do(d.drain)
	}
	return err
}

// decide counts an operation and returns the error that it fails with, if any.
func (d *Device) decide(op Op) (lost bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[Any]++
	d.counts[op]++
	if d.lost {
		return true, errLost(op)
	}
	if d.plan.Lie {
		return false, d.lie(op)
	}
	if p, n := d.plan, d.counts[d.plan.Op]; p.At == 0 || p.Op != Any && p.Op != op || n < p.At || n >= p.At+max(1, p.Times) {
		return false, nil
	}
	d.lost = d.plan.Lose
	kind := d.plan.Err
	switch {
	case kind != nil:
	case d.lost:
		kind = device.ErrLost
	default:
		kind = op.kind()
	}
	return d.lost, fmt.Errorf("%w: faulty: %v number %d, as planned", kind, op, d.counts[op])
}

// errLie stands for an operation that is not carried out, and reports success.
var errLie = errors.New("faulty: a lie")

// lie returns errLie for an operation that the plan says is one. The device's
// lock is held.
func (d *Device) lie(op Op) error {
	p := d.plan
	if op != Launch && op != CopyOut || p.Op != Any && p.Op != op || p.At == 0 || d.counts[p.Op] < p.At {
		return nil
	}
	return errLie
}

func errLost(what any) error {
	return fmt.Errorf("%w: faulty: %v after the loss", device.ErrLost, what)
}

// drain waits for the work on a device that was just lost: its streams must
// not touch memory that the caller has got back. Everyone who learns of the
// loss waits for it.
func (d *Device) drain() {
	d.running.Lock()
	defer d.running.Unlock()
	for _, s := range d.streams() {
		_ = s.inner.Synchronize() // the device is lost, whatever this says
		s.spoil()
	}
}

func (d *Device) streams() []*stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []*stream
	for r := range d.live {
		if s, ok := r.(*stream); ok {
			all = append(all, s)
		}
	}
	return all
}

// keep records something that is to be freed.
func (d *Device) keep(r any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[r] = struct{}{}
}

// giveBack frees something, on a lost device too. Memory that the wrapped
// device refuses to free stays recorded; anything else is gone, whatever error
// its Close returned for earlier work.
func (d *Device) giveBack(r any, free func() error) error {
	lost := d.afterLoss()
	err := free()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, memory := r.(block); err == nil || !memory {
		delete(d.live, r)
	}
	if lost {
		return errLost("giving back")
	}
	return err
}

// afterLoss reports whether the device is lost, and if so waits until its work
// has ended.
func (d *Device) afterLoss() bool {
	d.mu.Lock()
	lost := d.lost
	d.mu.Unlock()
	if lost {
		d.drained.Do(d.drain)
	}
	return lost
}
