//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// What a chain does is done at each start and not before, in its order, with
// what memory holds then.
func TestGraph(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	p := must[device.Ptr](t)(g.Alloc(64))
	pinned := must[[]byte](t)(g.HostAlloc(64))
	s := must[device.Stream](t)(g.NewStream())
	check(t, s.Fill(p, 0, 64))
	chain := must[device.Graph](t)(g.NewGraph(func(s device.Stream) error {
		return errors.Join(
			s.CopyIn(p, pinned[:16]), s.CopyDevice(p+16, p, 16), s.Fill(p, 0x01010101, 8), s.CopyOut(pinned[32:], p))
	}))
	model := make([]byte, 64)
	compare(t, s, p, model, make([]byte, 64))
	for i := range byte(5) {
		in := bytes.Repeat([]byte{i}, 16)
		copy(pinned, in)
		check(t, s.Start(chain))
		check(t, s.Synchronize())
		copy(model, in)
		copy(model[16:], in)
		copy(model, bytes.Repeat([]byte{1}, 8))
		compare(t, s, p, model, make([]byte, 64))
		if !bytes.Equal(pinned[32:], model[:32]) {
			t.Fatalf("copied out: %v", pinned[32:])
		}
	}
	if f.count(cuMemcpyHtoDAsync) != 1 || f.count(cuGraphLaunch) != 5 || f.count(cuGraphDestroy) != 1 {
		t.Error("the chain was recorded", f.count(cuMemcpyHtoDAsync), "times")
	}
	check(t, chain.Close())
	check(t, chain.Close())
	if s.Start(chain) == nil {
		t.Error("a graph was started that is closed")
	}
	check(t, g.Close())
}

// A launch in a graph has the parameters of the time when it was recorded.
func TestGraphLaunch(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	var a all
	check(t, a.make(g))
	args := []byte{1, 2, 3}
	chain := must[device.Graph](t)(g.NewGraph(func(s device.Stream) error {
		return s.Launch(a.k, device.Grid{Blocks: 7, Threads: 64, Shared: 100 << 10}, args)
	}))
	clear(args)
	before := f.launches
	check(t, a.s.Start(chain))
	if l := f.lastLaunch(); f.launches != before+1 || !bytes.Equal(l.params, []byte{1, 2, 3}) || l.grid.Blocks != 7 {
		t.Errorf("%d launches, %+v", f.launches-before, l)
	}
	check(t, a.m.Unload())
	if err := a.s.Start(chain); err == nil {
		t.Error("a kernel of an unloaded module was started")
	}
	check(t, g.Close())
}

// Chains that are no graphs, and graphs that are none of this GPU's.
func TestNoGraph(t *testing.T) {
	f, d := newFake(t, 2)
	var a, b all
	check(t, a.make(open(t, d, 0)))
	check(t, b.make(open(t, d, 1)))
	own := errors.New("the chain's own error")
	var kept device.Stream
	for name, chain := range map[string]func(device.Stream) error{
		"its error":       func(device.Stream) error { return own },
		"synchronize":     device.Stream.Synchronize,
		"close":           device.Stream.Close,
		"record":          func(s device.Stream) error { return s.Record(a.e) },
		"wait":            func(s device.Stream) error { return s.Wait(a.e) },
		"a graph":         func(s device.Stream) error { return s.Start(a.g) },
		"a kernel":        func(s device.Stream) error { return s.Launch(b.k, device.Grid{Blocks: 1, Threads: 1}, nil) },
		"no grid":         func(s device.Stream) error { return s.Launch(a.k, device.Grid{}, nil) },
		"too many":        func(s device.Stream) error { return s.Launch(a.k, device.Grid{Blocks: 1, Threads: 2000}, nil) },
		"heap in":         func(s device.Stream) error { return s.CopyIn(a.p, make([]byte, 8)) },
		"heap out":        func(s device.Stream) error { return s.CopyOut(make([]byte, 8), a.p) },
		"part of a fill":  func(s device.Stream) error { return s.Fill(a.p, 1, 3) },
		"no copy":         func(s device.Stream) error { return s.CopyDevice(a.p, a.p, -1) },
		"after the chain": func(s device.Stream) error { kept = s; return own },
	} {
		if _, err := a.d.NewGraph(chain); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := a.d.NewGraph(func(device.Stream) error { return own }); !errors.Is(err, own) {
		t.Error(err)
	}
	wantKind(t, kept.Fill(a.p, 1, 4), device.ErrLaunchFailed)
	wantKind(t, a.s.Start(b.g), device.ErrLaunchFailed)
	wantKind(t, a.s.Start(nil), device.ErrLaunchFailed)
	must[device.Graph](t)(a.d.NewGraph(func(s device.Stream) error { return nil }))
	must[device.Graph](t)(a.d.NewGraph(func(s device.Stream) error { return s.CopyIn(a.p, a.arena) }))
	check(t, a.d.Close())
	check(t, b.d.Close())
	if _, live := f.state(); live != 0 || len(f.leaked) != 0 {
		t.Error("left:", live, len(f.leaked))
	}
}

// Where the driver has no graphs, an error says so.
func TestGraphsMissing(t *testing.T) {
	for e := cuStreamBeginCapture; e <= cuGraphExecDestroy; e++ {
		_, d := newFake(t, 1)
		d.address[e] = 0
		g := open(t, d, 0)
		_, err := g.NewGraph(func(device.Stream) error { t.Error("recorded for nothing"); return nil })
		wantKind(t, err, device.ErrUnsupported)
		check(t, g.Close())
	}
}

// The same graph is started by many goroutines, in streams of their own: the
// fake tells if two are in the driver with it at once.
func TestStartAtOnce(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	var a all
	check(t, a.make(g))
	before := f.launches
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := g.NewStream()
			for range 10 {
				err = errors.Join(err, s.Start(a.g))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f.launches != before+80 {
		t.Error(f.launches-before, "launches")
	}
	check(t, g.Close())
}

// chainOf returns a chain of n launches, the i-th of which adds i and writes to
// the next word.
func (b bench) chainOf(t testing.TB, n int, p device.Ptr) func(device.Stream) error {
	k := b.kernel(t, "test_add")
	args := make([][]byte, n)
	for i := range args {
		at := uint64(p) + 4*uint64(i)
		args[i] = params(at+4, at, uint32(1), uint32(i))
	}
	return func(s device.Stream) error {
		for _, a := range args {
			if err := s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, a); err != nil {
				return err
			}
		}
		return nil
	}
}

// newGraph returns a graph of a real GPU, or skips the test.
func (b bench) newGraph(t testing.TB, chain func(device.Stream) error) device.Graph {
	t.Helper()
	g, err := b.d.NewGraph(chain)
	if errors.Is(err, device.ErrUnsupported) {
		t.Skip("needs a driver of CUDA 11.4:", err)
	}
	check(t, err)
	return g
}

// A graph of 10 launches that is started 100 times does what 1000 launches do.
func TestGraphOnGPU(t *testing.T) {
	const launches, starts = 10, 100
	b := newBench(t)
	p := must[device.Ptr](t)(b.d.Alloc(2 * 4 * (launches + 2)))
	q := p + 4*(launches+2)
	host := must[[]byte](t)(b.d.HostAlloc(4 * (launches + 2)))
	// Each pass goes on with the last word of the one before.
	pass := func(p device.Ptr) func(device.Stream) error {
		chain := b.chainOf(t, launches, p)
		return func(s device.Stream) error {
			return errors.Join(s.CopyDevice(p, p+4*launches, 4), chain(s), s.Fill(p+4*(launches+1), 5, 4))
		}
	}
	check(t, b.s.Fill(p, 1, 2*4*(launches+2)))
	graph := b.newGraph(t, func(s device.Stream) error {
		return errors.Join(pass(p)(s), s.CopyOut(host, p))
	})
	for range starts {
		check(t, b.s.Start(graph))
		check(t, pass(q)(b.s))
	}
	check(t, b.s.Synchronize())
	got, want := words(host), b.read(t, q, launches+2)
	if !slices.Equal(got, want) || got[launches] != 1+starts*(launches*(launches-1)/2) {
		t.Errorf("%d, want %d", got, want)
	}
	check(t, graph.Close())
}

// Graphs are recorded while other goroutines allocate, launch, wait and load.
func TestGraphsBesideOthers(t *testing.T) {
	b := newBench(t)
	b.newGraph(t, b.chainOf(t, 1, must[device.Ptr](t)(b.d.Alloc(8))))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := b.d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			own := bench{b.d, b.m, s}
			for range 20 {
				if i%2 == 0 {
					err = own.replay()
				} else {
					m, failed := b.d.Load(testPTX)
					if err = errors.Join(failed, own.add(1000, uint32(i))); failed == nil {
						err = errors.Join(err, m.Unload())
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// replay records a graph that adds, starts it twice and looks at the result.
func (b bench) replay() error {
	k, err1 := b.m.Kernel("test_add")
	p, err2 := b.d.Alloc(4)
	host, err3 := b.d.HostAlloc(4)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	g, err := b.d.NewGraph(func(s device.Stream) error {
		return errors.Join(s.Fill(p, 3, 4),
			s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, params(uint64(p), uint64(p), uint32(1), uint32(4))), s.CopyOut(host, p))
	})
	if err != nil {
		return err
	}
	err = errors.Join(b.s.Start(g), b.s.Start(g), b.s.Synchronize(), g.Close())
	if got := binary.LittleEndian.Uint32(host); err == nil && got != 7 {
		err = errors.New("the graph has not added")
	}
	return errors.Join(err, b.d.HostFree(host), b.d.Free(p))
}

// BenchmarkGraph compares seven small launches with one graph of them: what
// they cost the caller, and how long it takes until they are done.
func BenchmarkGraph(b *testing.B) {
	n := newBench(b)
	chain := n.chainOf(b, 7, must[device.Ptr](b)(n.d.Alloc(64)))
	graph := n.newGraph(b, chain)
	for name, start := range map[string]func() error{
		"launches": func() error { return chain(n.s) },
		"graph":    func() error { return n.s.Start(graph) },
	} {
		b.Run(name+"/queue", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := start(); err != nil {
					b.Fatal(err)
				}
				if i%64 == 63 {
					b.StopTimer()
					check(b, n.s.Synchronize())
					b.StartTimer()
				}
			}
		})
		b.Run(name+"/wait", func(b *testing.B) {
			for b.Loop() {
				if err := errors.Join(start(), n.s.Synchronize()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
