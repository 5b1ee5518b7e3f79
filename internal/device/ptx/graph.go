package ptx

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// graph is a device.Graph: tasks that Start puts into a stream's queue.
type graph struct {
	dev    *Device
	tasks  []task
	host   [][]byte // memory that they copy from and to
	closed bool
}

// NewGraph checks launches as Launch does, and host memory of copies: it must be
// page-locked, though only a real GPU needs that.
func (d *Device) NewGraph(chain func(device.Stream) error) (device.Graph, error) {
	r, err := device.Record(chain)
	if err != nil {
		return nil, err
	}
	s := &stream{dev: d, recording: true} // not among the device's: nothing runs
	if err := r.Replay(s); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := d.allPinned(r.Host); err != nil {
		return nil, err
	}
	return &graph{dev: d, tasks: s.queue, host: r.Host}, nil
}

// allPinned returns an error if some host memory of a graph is not page-locked
// by this device or shared with all.
func (d *Device) allPinned(host [][]byte) error {
	for _, b := range host {
		if len(b) > 0 && !d.isPinned(b) && !device.Shared(b) {
			return fmt.Errorf("%w: ptx: a graph copies %d bytes of host memory that is not page-locked", device.ErrLaunchFailed, len(b))
		}
	}
	return nil
}

func (d *Device) isPinned(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for first, p := range d.pinned {
		from := uintptr(unsafe.Pointer(first))
		if from <= at && at+uintptr(len(b)) <= from+uintptr(p.bytes) {
			return true
		}
	}
	return false
}

// Start queues nothing if a kernel of the graph has been unloaded, or host
// memory of it freed.
func (s *stream) Start(g device.Graph) error {
	own, ok := g.(*graph)
	if !ok || own.dev != s.dev {
		return fmt.Errorf("%w: ptx: a graph of another device", device.ErrLaunchFailed)
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if own.closed {
		return fmt.Errorf("%w: ptx: the graph is closed", device.ErrLaunchFailed)
	}
	if i := slices.IndexFunc(own.tasks, func(t task) bool { return t.launch != nil && t.launch.k.mod.gone }); i >= 0 {
		return fmt.Errorf("%w: ptx: kernel %s of a graph is unloaded", device.ErrLaunchFailed, own.tasks[i].launch.k.name)
	}
	if err := s.dev.allPinned(own.host); err != nil {
		return err
	}
	for _, t := range own.tasks {
		if err := s.push(t); err != nil {
			return err
		}
	}
	return nil
}

// Close leaves what was started to run. Closing twice is an error.
func (g *graph) Close() error {
	g.dev.mu.Lock()
	defer g.dev.mu.Unlock()
	if err := g.dev.open(); err != nil {
		return err
	}
	if g.closed {
		return fmt.Errorf("%w: ptx: the graph is closed", device.ErrLaunchFailed)
	}
	g.closed = true
	g.tasks = nil
	return nil
}
