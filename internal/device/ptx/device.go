package ptx

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// Device interprets PTX. It is a device.Device. One lock guards all of it: a
// launch runs on one goroutine, and launches run one after another, or take
// turns (Concurrent).
type Device struct {
	mu        sync.Mutex
	heap      heap
	machine   machine
	modes     modes
	known     knowledge // of the host, if launches may run at once
	rng       generator
	streams   []*stream
	pinned    map[*byte]pin
	closed    bool
	failed    error // the first of all work
	checkOnly bool
}

var _ device.Device = (*Device)(nil)

// pin is host memory recorded as page-locked: nothing else has to be done.
type pin struct {
	bytes      int
	registered bool
}

// Option configures a Device.
type Option func(*Device)

// Seed chooses the schedule of everything that runs, and the content of fresh
// memory. The same calls with the same seed result in the same run. The
// default is 1.
func Seed(seed uint64) Option {
	return func(d *Device) {
		d.heap.seed = mix(seed)
		d.rng = generator(mix(seed + 1))
	}
}

// Memory limits the total memory that Alloc and Grow return. The default is 1 GiB.
func Memory(bytes int64) Option {
	return func(d *Device) { d.heap.limit = bytes }
}

// RaceCheck turns the race detection on, which is the default, or off, which
// saves a fifth of the time, and 9 bytes for every byte touched.
func RaceCheck(on bool) Option {
	return func(d *Device) { d.machine.races = on }
}

// Steps makes a launch fail after it has executed most instructions, instead
// of spinning forever. 0, the default, means no limit.
func Steps(most uint64) Option {
	return func(d *Device) { d.machine.maxSteps = most }
}

// lazily is for Check: variables get addresses but no memory.
func lazily(d *Device) { d.checkOnly = true }

// New makes a device.
func New(opts ...Option) *Device {
	d := &Device{pinned: map[*byte]pin{}}
	d.heap.next, d.heap.limit = globalBase, 1<<30
	d.machine.races = true
	d.machine.heap = &d.heap
	Seed(1)(d)
	for _, o := range opts {
		o(d)
	}
	if d.modes.modelled() {
		d.machine.model = newModel(d.modes, d.machine.races)
		d.machine.races = false // the model has its own check
	}
	return d
}

// Info describes the interpreter; values without meaning here are made up.
func (d *Device) Info() device.Info {
	return device.Info{
		Name: "PTX interpreter", Driver: "Go", Capability: 90, Processors: processors,
		L2Bytes: 1 << 20, TotalBytes: d.heap.limit,
	}
}

// Instructions returns how many PTX instructions have been executed, by all
// threads of all launches.
func (d *Device) Instructions() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.machine.total
}

// Failed returns the first error of work that ran on the device, also one that
// its caller got over, and after Close: a test learns of a kernel that faulted
// though the CPU answered.
func (d *Device) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *Device) open() error {
	if d.closed {
		return fmt.Errorf("%w: ptx: the device is closed", device.ErrLost)
	}
	return nil
}

// FreeBytes returns the memory limit less what is allocated.
func (d *Device) FreeBytes() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heap.limit - d.heap.used, d.open()
}

// Alloc returns memory with undefined content: a pattern that depends on the
// seed.
func (d *Device) Alloc(bytes int) (device.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return 0, err
	}
	a, err := d.heap.alloc(bytes)
	if err != nil {
		return 0, err
	}
	return device.Ptr(a.base), nil
}

// Free ends an allocation at once: queued work that touches it fails.
func (d *Device) Free(p device.Ptr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return err
	}
	for _, s := range d.flights() {
		s.flight.forgetPlaces()
	}
	return d.heap.free(uint64(p))
}

// HostAlloc returns ordinary memory.
func (d *Device) HostAlloc(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%w: ptx: host allocation of %d bytes", device.ErrOutOfMemory, bytes)
	}
	b := make([]byte, bytes)
	return b, d.pin(b, false)
}

// HostFree frees memory that HostAlloc returned.
func (d *Device) HostFree(b []byte) error { return d.unpin(b, false) }

// Register records memory as page-locked.
func (d *Device) Register(b []byte) error { return d.pin(b, true) }

// Unregister undoes Register.
func (d *Device) Unregister(b []byte) error { return d.unpin(b, true) }

func (d *Device) pin(b []byte, registered bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return err
	}
	key := unsafe.SliceData(b)
	if _, ok := d.pinned[key]; ok || len(b) == 0 {
		return fmt.Errorf("%w: ptx: memory is empty or page-locked already", device.ErrLaunchFailed)
	}
	d.pinned[key] = pin{len(b), registered}
	return nil
}

func (d *Device) unpin(b []byte, registered bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return err
	}
	key := unsafe.SliceData(b)
	if p, ok := d.pinned[key]; !ok || p != (pin{len(b), registered}) {
		return fmt.Errorf("%w: ptx: %d bytes of host memory were not page-locked this way", device.ErrLaunchFailed, len(b))
	}
	delete(d.pinned, key)
	return nil
}

// Close frees everything. Work that is still queued is dropped.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return err
	}
	d.closed = true
	d.heap.live, d.heap.used = nil, 0
	d.streams, d.pinned = nil, nil
	d.machine = machine{heap: &d.heap}
	return nil
}
