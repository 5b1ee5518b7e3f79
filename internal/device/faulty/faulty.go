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
// An operation that fails is not carried out. What it would have written on
// the host is spoiled: the target of a failed CopyOut, and after a failed
// Synchronize the target of every copy that it should have waited for. So
// whoever overlooks the error has wrong answers, and never right ones by luck.
// When Synchronize has failed, nothing of that work is under way any more.
package faulty

import (
	"fmt"
	"sync"

	"github.com/pando-index/pando/internal/device"
)

// Op is a kind of operation. What gives something back (Free, Unload, Close)
// is none: it cannot be made to fail.
type Op uint8

const (
	Any Op = iota // each of those that follow
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
	Wait        // of a stream, for an event
	Synchronize // of a stream or an event; Since waits too and is one
	FreeBytes
	opCount
)

var opNames = [opCount]string{"any operation", "Alloc", "HostAlloc", "Register", "Load", "Kernel", "NewStream", "NewEvent",
	"CopyIn", "CopyOut", "CopyDevice", "Fill", "Launch", "Record", "Wait", "Synchronize", "FreeBytes"}

func (op Op) String() string {
	if op >= opCount {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return opNames[op]
}

// Ops lists every kind but Any.
func Ops() []Op {
	ops := make([]Op, 0, opCount-1)
	for op := Any + 1; op < opCount; op++ {
		ops = append(ops, op)
	}
	return ops
}

// kind is the error an operation fails with if the plan names none.
func (op Op) kind() error {
	switch op {
	case Alloc, HostAlloc, Register, NewStream, NewEvent:
		return device.ErrOutOfMemory
	case Load, Kernel:
		return device.ErrBadKernel
	}
	return device.ErrLaunchFailed
}

// Plan says what fails. The zero Plan fails nothing.
type Plan struct {
	Op Op
	// At is the number of the operation that fails, counted from 1 over all
	// operations of the kind Op, by whatever stream, event or module. 0 is none.
	At int
	// Err is what the error wraps; nil is what suits the operation.
	Err error
	// Lose loses the device with that operation: it and everything after it
	// fails with device.ErrLost, though the operation itself fails with Err
	// where that is given, as a kernel's error that ends a context does. What
	// gives something back still does so, and says device.ErrLost too.
	Lose bool
}

// Device is a device that fails as planned. The faults are its own; the device
// below goes on working, and its errors come through as they are.
type Device struct {
	inner device.Device
	plan  Plan

	// running is held for reading by every operation, so that the loss of the
	// device finds none half done.
	running sync.RWMutex
	drained sync.Once // on loss

	mu     sync.Mutex // guards what follows, and all outputs
	counts [opCount]int
	lost   bool
	live   map[any]struct{} // block, *stream, *event, *module
}

var _ device.Device = (*Device)(nil)

// New wraps a device. Closing the wrapper closes it.
func New(d device.Device, p Plan) *Device {
	return &Device{inner: d, plan: p, live: map[any]struct{}{}}
}

// Count tells how many operations of a kind were asked for so far, those that
// failed among them.
func (d *Device) Count(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// Live tells how many allocations, page-locked pieces of host memory, streams,
// events and modules have not been given back. Close gives back all.
func (d *Device) Live() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.live)
}

// do carries an operation out unless it is its turn to fail. spoil, which may
// be nil, is called instead.
func (d *Device) do(op Op, act func() error, spoil func()) error {
	d.running.RLock()
	lost, err := d.decide(op)
	if err == nil {
		defer d.running.RUnlock()
		return act()
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

// decide counts an operation and says what it fails with, if it does.
func (d *Device) decide(op Op) (lost bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[Any]++
	d.counts[op]++
	if d.lost {
		return true, errLost(op)
	}
	if p := d.plan; p.Op != Any && p.Op != op || p.At != d.counts[p.Op] {
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

func errLost(what any) error {
	return fmt.Errorf("%w: faulty: %v after the loss", device.ErrLost, what)
}

// drain ends the work on a device that was just lost: what its streams still
// hold must not move in memory that the caller has back. Everyone who learns
// of the loss waits for it.
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

// keep notes something that is to be given back.
func (d *Device) keep(r any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[r] = struct{}{}
}

// giveBack frees something, on a lost device too. Memory that the device below
// refuses to take stays noted; anything else is gone, whatever Close said of
// the work before it.
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

// afterLoss says whether the device is lost, and if so waits until it has come
// to rest.
func (d *Device) afterLoss() bool {
	d.mu.Lock()
	lost := d.lost
	d.mu.Unlock()
	if lost {
		d.drained.Do(d.drain)
	}
	return lost
}
