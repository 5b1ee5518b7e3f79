//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// all is one of every object that a device makes.
type all struct {
	d      device.Device
	p      device.Ptr
	pinned []byte
	arena  []byte
	m      device.Module
	k      device.Kernel
	s      device.Stream
	e, e2  device.Event
	r      device.Range
	h      device.HostRange
	g      device.Graph
}

// make makes all of them, and collects the errors.
func (a *all) make(d device.Device) error {
	var err [13]error
	a.d, a.arena = d, make([]byte, 100)
	a.p, err[0] = d.Alloc(1000)
	a.pinned, err[1] = d.HostAlloc(1000)
	err[2] = d.Register(a.arena)
	if a.m, err[3] = d.Load("code"); err[3] == nil {
		a.k, err[4] = a.m.Kernel("k")
	}
	a.s, err[5] = d.NewStream()
	a.e, err[6] = d.NewEvent()
	a.e2, err[7] = d.NewEvent()
	if a.r, err[8] = d.Reserve(16 * fakeGranule); err[8] == nil {
		err[9] = a.r.Grow(1)
	}
	a.g, err[10] = d.NewGraph(a.chain)
	if a.h, err[11] = d.ReserveHost(16 * hostGranule); err[11] == nil {
		err[12] = a.h.Grow(1)
	}
	return errors.Join(err[:]...)
}

// chain has one of each operation that graphs can have. What was not made is
// left out.
func (a *all) chain(s device.Stream) error {
	if a.k == nil || a.p == 0 || a.pinned == nil {
		return nil
	}
	return errors.Join(
		s.CopyIn(a.p, a.pinned[:64]), s.Fill(a.p+64, 7, 64), s.CopyDevice(a.p+128, a.p, 128),
		s.Launch(a.k, device.Grid{Blocks: 1, Threads: 32}, []byte{1, 2, 3}), s.CopyOut(a.pinned[:64], a.p))
}

// again reports whether a method of undo may be called twice.
func again(name string) bool {
	return slices.Contains([]string{"Unload", "Stream.Close", "Event.Close", "Range.Free", "HostRange.Free", "Graph.Close"}, name)
}

// methods returns every method that calls the driver, on all objects. Those
// that undo what make did are separate, because they work only once.
func (a *all) methods() (use, undo map[string]func() error) {
	grid := device.Grid{Blocks: 1, Threads: 32}
	use = hotOps(a.s, a.e, a.k, a.g, a.p, a.pinned[:64], nil)
	use["shared launch"] = func() error {
		return a.s.Launch(a.k, device.Grid{Blocks: 1, Threads: 32, Shared: 100 << 10}, []byte{1})
	}
	use["plain launch"] = func() error { return a.s.Launch(a.k, grid, nil) }
	use["empty CopyIn"] = func() error { return a.s.CopyIn(a.p, nil) }
	use["FreeBytes"] = func() error { _, err := a.d.FreeBytes(); return err }
	use["Alloc"] = func() error { _, err := a.d.Alloc(1); return err }
	use["HostAlloc"] = func() error { _, err := a.d.HostAlloc(1); return err }
	use["Register"] = func() error { return a.d.Register(make([]byte, 9)) }
	use["Load"] = func() error { _, err := a.d.Load("code"); return err }
	use["NewStream"] = func() error { _, err := a.d.NewStream(); return err }
	use["NewEvent"] = func() error { _, err := a.d.NewEvent(); return err }
	use["Kernel"] = func() error { _, err := a.m.Kernel("other"); return err }
	use["Since"] = func() error { _, err := a.e.Since(a.e2); return err }
	use["Occupancy"] = func() error { _, err := Occupancy(a.k, 64, 0); return err }
	use["Persist"] = func() error { return a.s.(device.Persister).Persist(a.p, 1000) }
	use["no Persist"] = func() error { return a.s.(device.Persister).Persist(0, 0) }
	use["Reserve"] = func() error { _, err := a.d.Reserve(1); return err }
	use["Grow"] = func() error { return a.r.Grow(a.r.Len() + 1) }
	use["ReserveHost"] = func() error { _, err := a.d.ReserveHost(1); return err }
	use["Grow on the host"] = func() error { return a.h.Grow(a.h.Len() + 1) }
	use["NewGraph"] = func() error { _, err := a.d.NewGraph(a.chain); return err }
	undo = map[string]func() error{
		"Free":           func() error { return a.d.Free(a.p) },
		"HostFree":       func() error { return a.d.HostFree(a.pinned) },
		"Unregister":     func() error { return a.d.Unregister(a.arena) },
		"Unload":         a.m.Unload,
		"Stream.Close":   a.s.Close,
		"Event.Close":    a.e.Close,
		"Range.Free":     a.r.Free,
		"HostRange.Free": a.h.Free,
		"Graph.Close":    a.g.Close,
	}
	return use, undo
}

// Every method works on an open device and returns an error on a closed one
// without calling the driver, and the device has then freed everything.
func TestCloseEndsEverything(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	var a all
	check(t, a.make(g))
	use, undo := a.methods()
	for name, op := range use {
		if err := op(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, g.Close())
	if _, live := f.state(); live != 0 || len(f.leaked) != 0 {
		t.Errorf("left after Close: %v, and %v with the context", f.live, f.leaked)
	}
	calls, _ := f.state()
	for name, op := range use {
		if op() == nil {
			t.Errorf("%s works on a closed device", name)
		}
	}
	for name, op := range undo {
		if err := op(); (err == nil) != again(name) {
			t.Errorf("%s on a closed device: %v", name, err)
		}
	}
	check(t, g.Close())
	if after, _ := f.state(); after != calls {
		t.Error("the driver was called", after-calls, "times after Close")
	}
}

// What is undone by hand is undone only once.
func TestUndoneOnce(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	var a all
	check(t, a.make(g))
	_, undo := a.methods()
	for name, op := range undo {
		if err := op(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := op(); (err == nil) != again(name) {
			t.Errorf("%s again: %v", name, err)
		}
	}
	s := must[device.Stream](t)(g.NewStream())
	if err := s.Launch(a.k, device.Grid{Blocks: 1, Threads: 1}, nil); err == nil {
		t.Error("a kernel of an unloaded module was launched")
	}
	check(t, s.Close())
	check(t, a.e2.Close())
	if len(g.held.objects)+len(g.held.blocks) != 0 {
		t.Error("the ledger keeps what is gone:", g.held.objects, g.held.blocks)
	}
	check(t, g.Free(0))
	check(t, g.HostFree(nil))
	check(t, g.Close())
	if _, live := f.state(); live != 0 || len(f.leaked) != 0 {
		t.Error("left:", f.live, f.leaked)
	}
}

// A sticky error is reported as itself once. Then every device on that GPU is
// lost, the driver is not called again, other GPUs continue, and the GPU can
// be opened again once all its devices are closed.
func TestLost(t *testing.T) {
	f, d := newFake(t, 2)
	g, twin, other := open(t, d, 0), open(t, d, 0), open(t, d, 1)
	var a all
	check(t, a.make(g))
	f.failWith(func(e entry, _ int) result {
		if e == cuStreamSynchronize {
			return 700
		}
		return 0
	})
	wantKind(t, a.s.Synchronize(), device.ErrLaunchFailed)
	f.failWith(nil)
	calls, _ := f.state()
	use, undo := a.methods()
	delete(use, "empty CopyIn") // calls nothing
	for name, op := range use {
		if err := op(); !errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrLaunchFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, op := range undo {
		if err := op(); !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := twin.Alloc(1)
	wantKind(t, err, device.ErrLost)
	_, err = d.open(0)
	wantKind(t, err, device.ErrLost)
	if after, _ := f.state(); after != calls {
		t.Error("the driver was called", after-calls, "times on a lost device")
	}
	check(t, g.Close())
	check(t, twin.Close())
	check(t, a.make(other))
	check(t, other.Close())
	again := open(t, d, 0)
	check(t, a.make(again))
	check(t, again.Close())
}

func TestContextIsShared(t *testing.T) {
	f, d := newFake(t, 1)
	var gs []*gpu
	for range 3 {
		gs = append(gs, open(t, d, 0))
	}
	p := must[device.Ptr](t)(gs[2].Alloc(10))
	if gs[0].Free(p) == nil {
		t.Error("a device freed what another one made")
	}
	for i, g := range gs {
		if f.users[0] != 1 || f.count(cuDevicePrimaryCtxRelease) != 0 {
			t.Fatalf("%d closed: %d retained, %d released", i, f.users[0], f.count(cuDevicePrimaryCtxRelease))
		}
		check(t, g.Close())
		check(t, g.Close())
	}
	if f.users[0] != 0 || len(f.leaked) != 0 {
		t.Error(f.users, f.leaked)
	}
}

// freeing are the functions that free something: if they fail, it leaks.
var freeing = []entry{cuMemFree, cuMemFreeHost, cuMemHostUnregister, cuModuleUnload, cuStreamDestroy, cuEventDestroy,
	cuMemUnmap, cuMemRelease, cuMemAddressFree, cuGraphDestroy, cuGraphExecDestroy}

// Runs the whole life of a device, failing at each call of the driver in turn,
// in three ways: nothing leaks, nothing is misused, and errors tell what
// failed.
func TestFailAtEveryCall(t *testing.T) {
	live := func(d *driver) error {
		g, err := d.open(0)
		if err != nil {
			return err
		}
		var a all
		errs := []error{a.make(g)}
		if errs[0] == nil {
			use, undo := a.methods()
			for _, name := range slices.Sorted(maps.Keys(use)) {
				errs = append(errs, use[name]())
			}
			errs = append(errs, undo["Free"](), undo["Stream.Close"](), undo["Range.Free"](), undo["Graph.Close"]())
		}
		return errors.Join(append(errs, g.Close())...)
	}
	f, d := newFake(t, 1)
	check(t, live(d))
	total, _ := f.state()
	for n := 1; n <= total; n++ {
		for r, kind := range map[result]error{2: device.ErrOutOfMemory, 719: device.ErrLaunchFailed, 214: device.ErrLost} {
			f, d := newFake(t, 1)
			var at entry
			f.failWith(func(e entry, call int) result {
				if call != n {
					return 0
				}
				at = e
				return r
			})
			err := live(d)
			name := fmt.Sprintf("call %d (%v) giving %d", n, at, r)
			quiet := at == cuDevicePrimaryCtxRelease || r == 214 // Close reports neither when the device is lost
			if !errors.Is(err, kind) && !(quiet && err == nil) {
				t.Errorf("%s: %v", name, err)
			}
			if len(f.users) > 0 && f.users[0] != 0 && at != cuDevicePrimaryCtxRelease {
				t.Errorf("%s: the context stays", name)
			}
			if at >= cuMemGetInfo && !slices.Contains(freeing, at) && (r == 2 && len(f.leaked) > 0 || len(f.live) > 0) {
				t.Errorf("%s: leaked %d things with the context, and %v", name, len(f.leaked), slices.Collect(maps.Keys(f.live)))
			}
		}
	}
}

// Launches reach the driver with the requested arguments.
func TestLaunchArguments(t *testing.T) {
	rng := seed.Rand(t)
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	m := must[device.Module](t)(g.Load("code"))
	s := must[device.Stream](t)(g.NewStream())
	for range 200 {
		name := string(rune('a' + rng.IntN(26)))
		k := must[device.Kernel](t)(m.Kernel(name))
		grid := device.Grid{Blocks: 1 + rng.IntN(1<<31-1), Threads: 1 + rng.IntN(1024), Shared: rng.IntN(fakeMostShared)}
		params := make([]byte, rng.IntN(maxParams+1))
		for i := range params {
			params[i] = byte(rng.Uint32())
		}
		check(t, s.Launch(k, grid, params))
		l := f.lastLaunch()
		if l.grid != grid || !bytes.Equal(l.params, params) || byte(l.function) != name[0] || k.Name() != name {
			t.Fatalf("launched %s %+v, got %+v", name, grid, l)
		}
	}
	k := must[device.Kernel](t)(m.Kernel("k"))
	for _, grid := range []device.Grid{{}, {Blocks: 1}, {Threads: 1}, {Blocks: -1, Threads: 1}, {Blocks: 1 << 32, Threads: 1},
		{Blocks: 1, Threads: 1<<32 + 1}, {Blocks: 1, Threads: 1, Shared: -1}, {Blocks: 1, Threads: 1, Shared: 1 << 32}} {
		wantKind(t, s.Launch(k, grid, nil), device.ErrLaunchFailed)
	}
	wantKind(t, s.Launch(k, device.Grid{Blocks: 1, Threads: 1}, make([]byte, maxParams+1)), device.ErrLaunchFailed)
	wantKind(t, s.Launch(nil, device.Grid{Blocks: 1, Threads: 1}, nil), device.ErrLaunchFailed)
	check(t, g.Close())
}

// More shared memory is requested when a launch needs it, and not again.
func TestSharedMemoryIsAskedForOnce(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	var a all
	check(t, a.make(g))
	asked := 0
	for _, step := range []struct{ shared, asked int }{
		{0, 0}, {plainShared - fakeStaticShared, 0}, {plainShared - fakeStaticShared + 1, 1},
		{plainShared, 1}, {plainShared, 0}, {100 << 10, 1}, {64 << 10, 0}, {100 << 10, 0},
	} {
		k := must[device.Kernel](t)(a.m.Kernel("k")) // the same one each time
		check(t, a.s.Launch(k, device.Grid{Blocks: 1, Threads: 32, Shared: step.shared}, nil))
		if asked += step.asked; f.count(cuFuncSetAttribute) != asked {
			t.Fatalf("%d bytes: asked %d times, want %d", step.shared, f.count(cuFuncSetAttribute), asked)
		}
	}
	check(t, g.Close())
}

// Objects of another GPU, or of no GPU, are refused before the driver sees
// them.
func TestStrangers(t *testing.T) {
	_, d := newFake(t, 2)
	var a, b all
	check(t, a.make(open(t, d, 0)))
	check(t, b.make(open(t, d, 1)))
	_, since := a.e.Since(b.e)
	_, sinceNil := a.e.Since(nil)
	_, occupancy := Occupancy(nil, 1, 1)
	for i, err := range []error{
		a.s.Launch(b.k, device.Grid{Blocks: 1, Threads: 1}, nil), a.s.Record(b.e), a.s.Wait(b.e), a.s.Record(nil),
		since, sinceNil, occupancy, a.d.Free(b.p), a.d.Free(a.p + 1), a.d.HostFree(b.pinned),
		a.d.HostFree(a.pinned[1:]), a.d.Unregister(a.pinned), a.d.Register(a.arena), a.s.Fill(a.p, 1, 3),
		a.s.Fill(a.p, 1, -4), a.s.CopyDevice(a.p, a.p, -1), a.s.(device.Persister).Persist(1, -1),
	} {
		if err == nil {
			t.Error("no error from call", i)
		}
	}
	check(t, a.d.Close())
	check(t, b.d.Close())
}

// Copies and fills move exactly the right bytes, compared with a model in Go.
func TestCopies(t *testing.T) {
	_, d := newFake(t, 1)
	g := open(t, d, 0)
	testCopies(t, g, 1<<10)
	check(t, g.Close())
}

// Goroutines use two GPUs at once: the fake records a call made with the wrong
// context, or with none.
func TestManyGoroutines(t *testing.T) {
	_, d := newFake(t, 2)
	gs := []*gpu{open(t, d, 0), open(t, d, 1)}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				var a all
				if err := a.make(gs[(i+j)%2]); err != nil {
					t.Error(err)
					return
				}
				use, undo := a.methods()
				for _, ops := range []map[string]func() error{use, undo} {
					for name, op := range ops {
						if err := op(); err != nil {
							t.Error(name, err)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	check(t, gs[0].Close())
	check(t, gs[1].Close())
}

// Streams, events, modules and finally the device are closed while goroutines
// keep using them: calls fail or work, but never use what is gone.
func TestCloseWhileInUse(t *testing.T) {
	rng := seed.Rand(t)
	for range 30 {
		f, d := newFake(t, 1)
		g := open(t, d, 0)
		var a all
		check(t, a.make(g))
		_, undo := a.methods()
		var wg sync.WaitGroup
		for range 8 {
			pause := time.Duration(rng.IntN(300)) * time.Microsecond
			wg.Go(func() {
				use, _ := a.methods()
				for range 5 {
					for _, op := range use {
						_ = op()
					}
				}
			})
			wg.Go(func() {
				time.Sleep(pause)
				for name, op := range undo {
					if err := op(); err != nil && again(name) {
						t.Error(name, err)
					}
				}
			})
		}
		wg.Go(func() {
			time.Sleep(500 * time.Microsecond)
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, live := f.state(); live != 0 || len(f.leaked) != 0 {
			t.Fatal("left:", f.live, f.leaked)
		}
	}
}
