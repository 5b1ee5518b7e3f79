//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// graph is an executable CUDA graph.
type graph struct {
	handle // CUgraphExec
	gpu    *gpu

	mu      sync.Mutex // the driver does not guard a graph against threads that start it at once
	modules []*module  // of its kernels, each once
}

// NewGraph refuses copies from and to memory that is not page-locked: the
// driver would take it, but the garbage collector does not know that a graph
// refers to it.
func (g *gpu) NewGraph(chain func(device.Stream) error) (device.Graph, error) {
	if err := g.context.driver.has(cuStreamBeginCapture, cuGraphExecDestroy); err != nil {
		return nil, err
	}
	r, err := device.Record(chain)
	if err != nil {
		return nil, err
	}
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	for _, b := range r.Host {
		if len(b) > 0 && !g.held.pinned(b) && !device.Shared(b) {
			return nil, fmt.Errorf("%w: a graph copies %d bytes of host memory that is not page-locked", device.ErrLaunchFailed, len(b))
		}
	}
	made := &graph{gpu: g, modules: modulesOf(r.Kernels)}
	if err := g.instantiate(&made.value, r); err != nil {
		return nil, err
	}
	g.held.addObject(made)
	return made, nil
}

func modulesOf(kernels []device.Kernel) []*module {
	var all []*module
	for _, k := range kernels {
		if own, ok := k.(*kernel); ok && !slices.Contains(all, own.module) {
			all = append(all, own.module)
		}
	}
	return all
}

// instantiate makes an executable graph of a recording.
func (g *gpu) instantiate(exec *uintptr, r *device.Recording) error {
	const noFlags = 0
	captured, err := g.captured(r)
	if err != nil {
		return err
	}
	c := g.context
	if err := c.call(cuGraphInstantiate, uintptr(unsafe.Pointer(exec)), captured, noFlags); err != nil {
		return errors.Join(err, unlessLost(c.call(cuGraphDestroy, captured)))
	}
	if err := c.call(cuGraphDestroy, captured); err != nil {
		return errors.Join(err, unlessLost(c.call(cuGraphExecDestroy, *exec)))
	}
	return nil
}

// captured returns the CUgraph of a recording.
func (g *gpu) captured(r *device.Recording) (uintptr, error) {
	s, err := g.makeStream() // of its own: nobody else can come in between
	if err != nil {
		return 0, err
	}
	c := g.context
	captured, err := s.captured(r)
	if err := errors.Join(err, unlessLost(c.call(cuStreamDestroy, s.value))); err != nil {
		if captured != 0 {
			err = errors.Join(err, unlessLost(c.call(cuGraphDestroy, captured)))
		}
		return 0, err
	}
	return captured, nil
}

// captured replays a recording while the driver captures the stream. Nothing
// that is not our own runs meanwhile. A graph may be there in spite of an error.
//
// The mode is relaxed: in any other, the driver wants the whole capture on one
// thread, and makes calls of this or of other threads fail that are none of the
// capture's business, such as allocations.
func (s *stream) captured(r *device.Recording) (captured uintptr, err error) {
	const relaxed = 2
	c := s.gpu.context
	c.capture.Lock()
	defer c.capture.Unlock()
	if err := c.call(cuStreamBeginCapture, s.value, relaxed); err != nil {
		return 0, err
	}
	err = r.Replay(s)
	end := c.call(cuStreamEndCapture, s.value, uintptr(unsafe.Pointer(&captured)))
	if err == nil {
		err = end // after an error there is one here, too, which says less
	}
	return captured, err
}

// Start returns an error if a module of the graph's kernels has been unloaded.
func (s *stream) Start(g device.Graph) error {
	own, ok := g.(*graph)
	if !ok || own.gpu.context != s.gpu.context {
		return fmt.Errorf("%w: the graph is not of this GPU", device.ErrLaunchFailed)
	}
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer s.release()
	exec, err := own.hold()
	if err != nil {
		return err
	}
	defer own.release()
	held, err := own.holdModules()
	defer releaseAll(held)
	if err != nil {
		return err
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	return s.gpu.context.call4(cuGraphLaunch, exec, h, 0, 0)
}

// holdModules returns the modules that it could hold, and an error if these
// are not all.
func (g *graph) holdModules() ([]*module, error) {
	for i, m := range g.modules {
		if _, err := m.hold(); err != nil {
			return g.modules[:i], err
		}
	}
	return g.modules, nil
}

func releaseAll(held []*module) {
	for _, m := range held {
		m.release()
	}
}

// Close lets what was started finish by itself. Closing again does nothing.
func (g *graph) Close() error {
	return g.destroy(func(exec uintptr) error {
		defer g.gpu.held.removeObject(g)
		return g.gpu.context.call(cuGraphExecDestroy, exec)
	})
}
