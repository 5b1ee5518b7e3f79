package device

import (
	"fmt"
	"slices"
	"sync"
)

// Recording is a chain of operations that was written down. Devices make their
// graphs of it.
type Recording struct {
	Kernels []Kernel // those it launches, each once
	Host    [][]byte // memory that it copies from and to
	Out     [][]byte // those of Host that it copies to
	steps   []func(Stream) error
}

// Record writes down what chain does with a stream. No device is involved:
// whether it accepts the operations shows in Replay.
func Record(chain func(Stream) error) (*Recording, error) {
	r := &recorder{to: new(Recording)}
	err := chain(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.to
	r.to = nil
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Replay does the same with a stream of a device, up to the first error.
func (r *Recording) Replay(s Stream) error {
	for _, step := range r.steps {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

// recorder is the Stream that chains are recorded from.
type recorder struct {
	mu sync.Mutex
	to *Recording // nil once the chain has returned
}

// errNotRecorded is the error of what no graph can contain.
var errNotRecorded = fmt.Errorf("%w: graphs consist of launches, fills and copies only", ErrLaunchFailed)

// add writes a step down; note, which may be nil, adds what it uses.
func (r *recorder) add(step func(Stream) error, note func(*Recording)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		return fmt.Errorf("%w: the graph has been recorded already", ErrLaunchFailed)
	}
	r.to.steps = append(r.to.steps, step)
	if note != nil {
		note(r.to)
	}
	return nil
}

func (r *recorder) CopyIn(dst Ptr, src []byte) error {
	return r.add(func(s Stream) error { return s.CopyIn(dst, src) }, func(to *Recording) {
		to.Host = append(to.Host, src)
	})
}

func (r *recorder) CopyOut(dst []byte, src Ptr) error {
	return r.add(func(s Stream) error { return s.CopyOut(dst, src) }, func(to *Recording) {
		to.Host = append(to.Host, dst)
		to.Out = append(to.Out, dst)
	})
}

func (r *recorder) CopyDevice(dst, src Ptr, bytes int) error {
	return r.add(func(s Stream) error { return s.CopyDevice(dst, src, bytes) }, nil)
}

func (r *recorder) Fill(dst Ptr, value uint32, bytes int) error {
	return r.add(func(s Stream) error { return s.Fill(dst, value, bytes) }, nil)
}

func (r *recorder) Launch(k Kernel, g Grid, params []byte) error {
	params = slices.Clone(params)
	return r.add(func(s Stream) error { return s.Launch(k, g, params) }, func(to *Recording) {
		if !slices.Contains(to.Kernels, k) {
			to.Kernels = append(to.Kernels, k)
		}
	})
}

func (r *recorder) Start(Graph) error  { return errNotRecorded }
func (r *recorder) Record(Event) error { return errNotRecorded }
func (r *recorder) Wait(Event) error   { return errNotRecorded }
func (r *recorder) Synchronize() error { return errNotRecorded }
func (r *recorder) Close() error       { return errNotRecorded }
