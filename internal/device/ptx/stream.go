package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando/internal/device"
)

// stream is a queue of work. Work seldom runs at the time it is queued; it runs
// when the host waits, in an order between streams that depends on the seed and
// that only events constrain. So a missing Wait shows.
type stream struct {
	dev    *Device
	queue  []task
	err    error // first error of work since the last Synchronize
	closed bool

	// recording is set while a graph is made: tasks are queued, and stay.
	recording bool

	// If launches may run at once: the one that has begun, and the knowledge
	// that the stream's work has of others'.
	flight *machine
	known  dated
}

// task is one piece of queued work: do, after or done is set. do gets the
// stream that it runs in, so that a graph's tasks can be queued in any.
type task struct {
	do     func(*stream) error
	launch *start // the launch that do makes
	after  *mark  // wait for it
	done   *mark  // reach it
	told   dated  // the host's knowledge when it queued the task
}

// mark is one recording of an event.
type mark struct {
	reached bool
	at      time.Time
	err     error
	known   dated
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
	if s.recording {
		s.queue = append(s.queue, t)
		return nil
	}
	if s.dev.modes.both {
		t.told = s.dev.machine.model.date(s.dev.known)
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

// startable returns the streams whose next task can be taken.
func (d *Device) startable() []*stream {
	var can []*stream
	for _, s := range d.streams {
		if s.flight == nil && len(s.queue) > 0 && (s.queue[0].after == nil || s.queue[0].after.reached) {
			can = append(can, s)
		}
	}
	return can
}

// step runs one task of one stream, chosen by the seed; it returns false if
// none can run.
func (d *Device) step() bool {
	if d.modes.both {
		return d.stepBoth()
	}
	can := d.startable()
	if len(can) == 0 {
		return false
	}
	d.take(can[d.rng.below(len(can))])
	return true
}

// take runs the next task of a stream, or begins it if it is a launch and
// several may run at once.
func (d *Device) take(s *stream) {
	t := s.queue[0]
	s.queue = s.queue[1:]
	if d.modes.both {
		d.machine.model.include(s.side(), t.told)
	}
	switch {
	case t.launch != nil && s.err == nil && d.modes.both && !t.launch.k.mod.gone:
		s.takeOff(t.launch)
	case t.do != nil:
		if s.err == nil { // after an error, later work in the stream is dropped
			if s.err = t.do(s); d.failed == nil {
				d.failed = s.err
			}
		}
	case t.after != nil:
		if s.err == nil {
			s.err = t.after.err
		}
		if d.modes.both {
			d.machine.model.include(s.side(), t.after.known)
		}
	case t.done != nil:
		*t.done = mark{reached: true, at: time.Now(), err: s.err}
		if d.modes.both {
			t.done.known = d.machine.model.date(*s.side())
		}
	}
}

func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	return s.enqueue(task{do: func(s *stream) error {
		b, err := s.dev.heap.at(dst, len(src))
		copy(b, src)
		s.hostWrites(dst, len(b))
		return err
	}})
}

func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	return s.enqueue(task{do: func(s *stream) error {
		b, err := s.dev.heap.at(src, len(dst))
		copy(dst, b)
		return err
	}})
}

func (s *stream) CopyDevice(dst, src device.Ptr, bytes int) error {
	if bytes < 0 {
		return fmt.Errorf("%w: ptx: copy of %d bytes", device.ErrLaunchFailed, bytes)
	}
	return s.enqueue(task{do: func(s *stream) error {
		from, err := s.dev.heap.at(src, bytes)
		if err != nil {
			return err
		}
		to, err := s.dev.heap.at(dst, bytes)
		copy(to, from)
		s.hostWrites(dst, len(to))
		return err
	}})
}

func (s *stream) Fill(dst device.Ptr, value uint32, bytes int) error {
	if bytes < 0 || bytes%4 != 0 || dst%4 != 0 {
		return fmt.Errorf("%w: ptx: fill of %d bytes at %#x", device.ErrLaunchFailed, bytes, uint64(dst))
	}
	return s.enqueue(task{do: func(s *stream) error {
		b, err := s.dev.heap.at(dst, bytes)
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], value)
		}
		s.hostWrites(dst, len(b))
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
	return s.push(task{launch: &start{own, g, params}, do: func(s *stream) error {
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
	case len(params) != k.paramBytes:
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

// Synchronize runs the work that is queued here, and other work that the seed
// chooses. An error is returned once; the stream can then be used again.
func (s *stream) Synchronize() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.drain()
}

func (s *stream) drain() error {
	for (len(s.queue) > 0 || s.flight != nil) && s.dev.step() {
	}
	if s.dev.modes.both {
		s.dev.known.join(s.side())
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
	if e.dev.modes.both {
		e.dev.machine.model.include(&e.dev.known, e.last.known)
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
