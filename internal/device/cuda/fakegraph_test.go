//go:build !nogpu && linux && (amd64 || arm64)

package cuda

// capturer is what the fake knows of graphs: operations of a stream that is
// being captured are kept, and run when the graph is launched.
type capturer struct {
	streams map[uintptr]*[]func() result // being captured
	graphs  map[uintptr][]func() result  // by CUgraph or CUgraphExec
	running map[uintptr]bool             // by CUgraphExec, in a call of cuGraphLaunch
}

func newCapturer() capturer {
	return capturer{streams: map[uintptr]*[]func() result{}, graphs: map[uintptr][]func() result{}, running: map[uintptr]bool{}}
}

// forget ends a stream or graph.
func (c *capturer) forget(h uintptr) {
	delete(c.streams, h)
	delete(c.graphs, h)
}

// queue runs an operation of a stream now, or keeps it for the graph.
func (f *fake) queue(stream uintptr, do func() result) result {
	if kept := f.capturer.streams[stream]; kept != nil {
		*kept = append(*kept, do)
		return 0
	}
	return do()
}

func addGraphs(all *[entryCount]any) {
	all[cuStreamBeginCapture] = func(stream, mode uintptr) uintptr {
		return serveIn(cuStreamBeginCapture, func(f *fake, c uintptr) result {
			if !f.own(stream, cuStreamDestroy, c) || f.capturer.streams[stream] != nil || mode != 2 {
				f.wrong("capture of %#x in mode %d", stream, mode)
				return 1
			}
			f.capturer.streams[stream] = new([]func() result)
			return 0
		})
	}
	all[cuStreamEndCapture] = func(stream uintptr, out *uintptr) uintptr {
		return serveIn(cuStreamEndCapture, func(f *fake, c uintptr) result {
			kept := f.capturer.streams[stream]
			if !f.own(stream, cuStreamDestroy, c) || kept == nil {
				f.wrong("the capture of %#x ends, which never began", stream)
				return 1
			}
			delete(f.capturer.streams, stream)
			f.make(c, cuGraphDestroy, out, nil)
			f.capturer.graphs[*out] = *kept
			return 0
		})
	}
	all[cuGraphInstantiate] = func(out *uintptr, graph, flags uintptr) uintptr {
		return serveIn(cuGraphInstantiate, func(f *fake, c uintptr) result {
			if !f.own(graph, cuGraphDestroy, c) || flags != 0 {
				f.wrong("%#x instantiated with flags %d", graph, flags)
				return 1
			}
			f.make(c, cuGraphExecDestroy, out, nil)
			f.capturer.graphs[*out] = f.capturer.graphs[graph]
			return 0
		})
	}
	all[cuGraphLaunch] = func(exec, stream uintptr) uintptr {
		return serveIn(cuGraphLaunch, func(f *fake, c uintptr) result {
			if !f.own(exec, cuGraphExecDestroy, c) || !f.own(stream, cuStreamDestroy, c) || f.capturer.running[exec] {
				f.wrong("graph %#x launched in %#x", exec, stream)
				return 1
			}
			f.capturer.running[exec] = true
			f.yield() // the driver has no lock for a graph either
			f.capturer.running[exec] = false
			for _, do := range f.capturer.graphs[exec] {
				if r := do(); r != 0 {
					return r
				}
			}
			return 0
		})
	}
}
