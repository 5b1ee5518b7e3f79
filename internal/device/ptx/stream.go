package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando/internal/device"
)

// stream is a queue of work. Work seldom runs at the time it is queued; it
// runs when someone waits, in an order between streams that depends on the
// seed and that only events constrain. So a missing Wait shows.
type stream struct {
	dev    *Device
	queue  []task
	err    error // first error of work since the last Synchronize
	closed bool
}

// task is one piece of queued work. Exactly one of its fields is set.
type task struct {
	do    func() error
	after *mark // wait for it
	done  *mark // reach it
}

// mark is one recording of an event.
type mark struct {
	reached bool
	at      time.Time
	err     error
}

// event is a device.Event.
type event struct {
	dev    *Device
	last   *mark
	closed bool
}

// NewStream makes a stream.
func (d *Device) NewStream() (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	s := &stream{dev: d}
	d.streams = append(d.streams, s)
	return s, nil
}

// NewEvent makes an event that is not recorded yet.
func (d *Device) NewEvent() (device.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &event{dev: d}, d.open()
}

// push queues a task, and now and then lets the device run ahead. The lock
// must be held.
func (s *stream) push(t task) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.queue = append(s.queue, t)
	if n := s.dev.rng.below(8); n == 0 {
		s.dev.advance(1 + s.dev.rng.below(4))
	}
	return nil
}

func (s *stream) usable() error {
	if err := s.dev.open(); err != nil {
		return err
	}
	if s.closed {
		return fmt.Errorf("%w: ptx: the stream is closed", device.ErrLaunchFailed)
	}
	return nil
}

func (s *stream) enqueue(t task) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	return s.push(t)
}

// advance runs up to n of the tasks that may run now.
func (d *Device) advance(n int) {
	for ; n > 0; n-- {
		if !d.step() {
			return
		}
	}
}

// step runs one task of one stream, chosen by the seed; it returns false if
// none can run.
func (d *Device) step() bool {
	var can []*stream
	for _, s := range d.streams {
		if len(s.queue) > 0 && (s.queue[0].after == nil || s.queue[0].after.reached) {
			can = append(can, s)
		}
	}
	if len(can) == 0 {
		return false
	}
	s := can[d.rng.below(len(can))]
	t := s.queue[0]
	s.queue = s.queue[1:]
	switch {
	case t.do != nil:
		if s.err == nil { // after an error, later work in the stream is dropped
			if s.err = t.do(); d.failed == nil {
				d.failed = s.err
			}
		}
	case t.after != nil:
		if s.err == nil {
			s.err = t.after.err
		}
	case t.done != nil:
		*t.done = mark{true, time.Now(), s.err}
	}
	return true
}

func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	return s.enqueue(task{do: func() error {
		b, err := s.dev.heap.at(dst, len(src))
		copy(b, src)
		return err
	}})
}

func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	return s.enqueue(task{do: func() error {
		b, err := s.dev.heap.at(src, len(dst))
		copy(dst, b)
		return err
	}})
}

func (s *stream) CopyDevice(dst, src device.Ptr, bytes int) error {
	if bytes < 0 {
		return fmt.Errorf("%w: ptx: copy of %d bytes", device.ErrLaunchFailed, bytes)
	}
	return s.enqueue(task{do: func() error {
		from, err := s.dev.heap.at(src, bytes)
		if err != nil {
			return err
		}
		to, err := s.dev.heap.at(dst, bytes)
		copy(to, from)
		return err
	}})
}

func (s *stream) Fill(dst device.Ptr, value uint32, bytes int) error {
	if bytes < 0 || bytes%4 != 0 || dst%4 != 0 {
		return fmt.Errorf("%w: ptx: fill of %d bytes at %#x", device.ErrLaunchFailed, bytes, uint64(dst))
	}
	return s.enqueue(task{do: func() error {
		b, err := s.dev.heap.at(dst, bytes)
		for ; len(b) > 0; b = b[4:] {
			binary.LittleEndian.PutUint32(b, value)
		}
		return err
	}})
}

func (s *stream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	own, ok := k.(*kernel)
	if !ok || own.mod.dev != s.dev {
		return fmt.Errorf("%w: ptx: a kernel of another device", device.ErrBadKernel)
	}
	if err := own.accepts(g, params); err != nil {
		return err
	}
	params = slices.Clone(params)
	return s.push(task{do: func() error {
		if own.mod.gone {
			return fmt.Errorf("%w: ptx: kernel %s was unloaded before it ran", device.ErrBadKernel, own.name)
		}
		return s.dev.machine.launch(own, g, params, s.dev.rng.next())
	}})
}

// accepts checks a launch against the limits of the kernel and the device.
func (k *kernel) accepts(g device.Grid, params []byte) error {
	most := maxThreads
	if k.maxThreads != 0 {
		most = min(most, k.maxThreads)
	}
	why := ""
	switch {
	case k.mod.gone:
		why = "its module is unloaded"
	case g.Blocks < 1 || g.Threads < 1 || g.Blocks > 1<<31-1 || int64(g.Blocks) > (1<<32-2)/int64(g.Threads):
		why = "the grid is empty or too large"
	case g.Threads > most:
		why = fmt.Sprintf("at most %d threads a block", most)
	case k.reqThreads != 0 && g.Threads != k.reqThreads:
		why = fmt.Sprintf("needs %d threads a block", k.reqThreads)
	case g.Shared < 0 || g.Shared > maxShared-(k.dynBase-sharedBase):
		why = fmt.Sprintf("%d bytes of dynamic shared memory", g.Shared)
	case len(params) < k.paramBytes || len(params) > roundUp(k.paramBytes, 8):
		why = fmt.Sprintf("%d bytes of parameters, not %d", len(params), k.paramBytes)
	default:
		return nil
	}
	return fmt.Errorf("%w: ptx: kernel %s, %d blocks of %d threads: %s", device.ErrLaunchFailed, k.name, g.Blocks, g.Threads, why)
}

func (s *stream) Record(e device.Event) error {
	own, ok := e.(*event)
	if !ok || own.dev != s.dev {
		return fmt.Errorf("%w: ptx: an event of another device", device.ErrLaunchFailed)
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	own.last = new(mark)
	return s.push(task{done: own.last})
}

// Wait holds back later work of the stream until the event's latest recording
// is reached. An event that was never recorded holds back nothing.
func (s *stream) Wait(e device.Event) error {
	own, ok := e.(*event)
	if !ok || own.dev != s.dev {
		return fmt.Errorf("%w: ptx: an event of another device", device.ErrLaunchFailed)
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if own.last == nil {
		return s.usable()
	}
	return s.push(task{after: own.last})
}

// Synchronize runs what is queued here, and whatever else the seed chooses. An
// error is returned once; the stream can then be used again.
func (s *stream) Synchronize() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.drain()
}

func (s *stream) drain() error {
	for len(s.queue) > 0 && s.dev.step() {
	}
	err := s.err
	s.err = nil
	return err
}

// Close runs what is queued and ends the stream.
func (s *stream) Close() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	err := s.drain()
	s.closed = true
	s.dev.streams = slices.DeleteFunc(s.dev.streams, func(o *stream) bool { return o == s })
	return err
}

// Synchronize runs work until the latest recording is reached. It returns the
// error of the work before it; the stream returns that error too.
func (e *event) Synchronize() error {
	e.dev.mu.Lock()
	defer e.dev.mu.Unlock()
	if err := e.usable(); err != nil || e.last == nil {
		return err
	}
	for !e.last.reached && e.dev.step() {
	}
	return e.last.err
}

// Since returns the wall time between the two recordings, which must have been
// reached.
func (e *event) Since(earlier device.Event) (float64, error) {
	e.dev.mu.Lock()
	defer e.dev.mu.Unlock()
	o, ok := earlier.(*event)
	if !ok || o.dev != e.dev || o.last == nil || e.last == nil || !o.last.reached || !e.last.reached {
		return 0, fmt.Errorf("%w: ptx: an event is not recorded, or not reached yet", device.ErrLaunchFailed)
	}
	return float64(e.last.at.Sub(o.last.at)) / float64(time.Millisecond), nil
}

func (e *event) Close() error {
	e.dev.mu.Lock()
	defer e.dev.mu.Unlock()
	if err := e.usable(); err != nil {
		return err
	}
	e.closed = true
	return nil
}

func (e *event) usable() error {
	if err := e.dev.open(); err != nil {
		return err
	}
	if e.closed {
		return fmt.Errorf("%w: ptx: the event is closed", device.ErrLaunchFailed)
	}
	return nil
}
