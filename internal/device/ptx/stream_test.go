package ptx

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// addBody adds its second parameter to the word at the first.
const addBody = "ld.param.u64 %d0, [p0];\nld.param.u32 %r1, [p1];\nld.global.u32 %r2, [%d0];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d0], %r2;"

// TestStreamOrder tests that the work of a stream is done in order.
func TestStreamOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := newRig(t, Seed(seed))
		add := r.load(program(2, addBody))("k")
		p, q := r.alloc32([]uint32{1, 2}), r.alloc32([]uint32{0, 0})
		r.must(r.s.Launch(add, one(1), pack(p, uint64(10))))
		r.must(r.s.CopyDevice(q, p, 8))
		r.must(r.s.Launch(add, one(1), pack(q, uint64(100))))
		r.must(r.s.Fill(p, 7, 4))
		if got := r.read32(q, 2); got[0] != 111 || got[1] != 2 {
			t.Fatalf("seed %d: %v", seed, got)
		}
		if got := r.read32(p, 2); got[0] != 7 || got[1] != 2 {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

// TestEventsOrderStreams tests that with an event the second stream sees what
// the first wrote, in every schedule; without it, not in every one.
func TestEventsOrderStreams(t *testing.T) {
	for _, wait := range []bool{true, false} {
		wrong := 0
		for seed := range uint64(100) {
			r := newRig(t, Seed(seed))
			add := r.load(program(2, addBody))("k")
			p := r.alloc32([]uint32{1})
			r.must(r.s.Synchronize())
			other, err := r.dev.NewStream()
			r.must(err)
			ev, err := r.dev.NewEvent()
			r.must(err)
			r.must(r.s.Launch(add, one(1), pack(p, uint64(41))))
			r.must(r.s.Record(ev))
			if wait {
				r.must(other.Wait(ev))
			}
			got := make([]byte, 4)
			r.must(other.CopyOut(got, p))
			r.must(other.Synchronize())
			if got[0] != 42 {
				wrong++
			}
			r.must(other.Close())
			r.must(r.s.Close())
			r.must(ev.Close())
		}
		if wait && wrong > 0 || !wait && (wrong == 0 || wrong == 100) {
			t.Errorf("wait %v: read too early in %d of 100 runs", wait, wrong)
		}
	}
}

// TestCopiesHappenLate tests that host memory is read when the queue runs the
// copy, in some schedules after the caller has changed it.
func TestCopiesHappenLate(t *testing.T) {
	late := 0
	for seed := range uint64(100) {
		r := newRig(t, Seed(seed))
		p, err := r.dev.Alloc(4)
		r.must(err)
		src := []byte{1, 2, 3, 4}
		r.must(r.s.CopyIn(p, src))
		src[0] = 9
		if r.read(p, 4)[0] == 9 {
			late++
		}
	}
	if late == 0 || late == 100 {
		t.Errorf("late in %d of 100", late)
	}
}

func TestEventTimes(t *testing.T) {
	r := newRig(t)
	a, err := r.dev.NewEvent()
	r.must(err)
	b, err := r.dev.NewEvent()
	r.must(err)
	r.must(a.Synchronize()) // never recorded: nothing to wait for
	if _, err := b.Since(a); err == nil {
		t.Error("Since of events never recorded")
	}
	r.must(r.s.Record(a))
	r.must(r.s.Record(b))
	r.must(b.Synchronize())
	if ms, err := b.Since(a); err != nil || ms < 0 || ms > 60000 {
		t.Errorf("%v ms, %v", ms, err)
	}
}

// TestErrorsTravel tests that work after a failed launch is dropped, that
// events carry the error to streams that wait, and that each stream returns it
// once.
func TestErrorsTravel(t *testing.T) {
	for seed := range uint64(30) {
		r := newRig(t, Seed(seed))
		trap := r.load(program(0, "trap;"))("k")
		p := r.alloc([]byte{1, 2, 3, 4})
		r.must(r.s.Synchronize())
		other, err := r.dev.NewStream()
		r.must(err)
		ev, err := r.dev.NewEvent()
		r.must(err)
		r.must(r.s.Launch(trap, one(1), nil))
		r.must(r.s.Fill(p, 0, 4))
		r.must(r.s.Record(ev))
		r.must(other.Wait(ev))
		r.must(other.Fill(p, 0, 4))
		if err := other.Synchronize(); !isKind(err, Trap) {
			t.Fatalf("seed %d: the waiting stream says %v", seed, err)
		}
		if err := ev.Synchronize(); !isKind(err, Trap) {
			t.Fatalf("seed %d: the event says %v", seed, err)
		}
		if err := r.s.Synchronize(); !isKind(err, Trap) {
			t.Fatalf("seed %d: the stream says %v", seed, err)
		}
		if got := r.read(p, 4); !bytes.Equal(got, []byte{1, 2, 3, 4}) {
			t.Fatalf("seed %d: work after the error was done: %v", seed, got)
		}
	}
}

// TestFailed tests that the device keeps the first error that work had, when
// streams have returned it, later work has failed and the device is closed.
func TestFailed(t *testing.T) {
	r := newRig(t)
	trap, add := r.load(program(0, "trap;"))("k"), r.load(program(2, addBody))("k")
	r.must(r.s.Launch(add, one(1), pack(r.alloc32([]uint32{1}), uint64(1))))
	r.must(r.s.Synchronize())
	if err := r.dev.Failed(); err != nil {
		t.Fatalf("nothing has failed: %v", err)
	}
	r.must(r.s.Launch(trap, one(1), nil))
	first := r.s.Synchronize()
	r.must(r.s.Launch(add, one(1), pack(device.Ptr(8), uint64(1))))
	if second := r.s.Synchronize(); !isKind(first, Trap) || !isKind(second, OutOfBounds) {
		t.Fatalf("%v, then %v", first, second)
	}
	r.must(r.dev.Close())
	if err := r.dev.Failed(); err != first {
		t.Errorf("%v, want %v", err, first)
	}
}

// TestGoroutines tests that a device may be used from many goroutines at once.
func TestGoroutines(t *testing.T) {
	d := New(Seed(5))
	r := &rig{TB: t, dev: d}
	add := r.load(program(2, addBody))("k")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s, err := d.NewStream()
			own := &rig{t, d, s}
			if err != nil {
				t.Error(err)
				return
			}
			p := own.alloc32([]uint32{uint32(i)})
			for range 20 {
				if err := s.Launch(add, one(1), pack(p, uint64(3))); err != nil {
					t.Error(err)
				}
			}
			if got := own.read32(p, 1)[0]; got != uint32(i+60) {
				t.Errorf("stream %d: %d", i, got)
			}
		})
	}
	wg.Wait()
}

func TestMemoryLimit(t *testing.T) {
	r := newRig(t, Memory(1000))
	p, err := r.dev.Alloc(600)
	r.must(err)
	if _, err := r.dev.Alloc(401); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("over the limit: %v", err)
	}
	if free, err := r.dev.FreeBytes(); free != 400 || err != nil {
		t.Errorf("%d bytes free, %v", free, err)
	}
	r.must(r.dev.Free(p))
	q, err := r.dev.Alloc(1000)
	r.must(err)
	if q%256 != 0 || q == p {
		t.Errorf("address %#x after %#x", q, p)
	}
	if err := r.dev.Free(p); err == nil {
		t.Error("freed twice")
	}
	big := ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .b8 x[2000];\n"
	if _, err := r.dev.Load(big); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("variables over the limit: %v", err)
	}
	r.must(Check(big))
}

// TestMisuse tests that mistakes of the host are errors, not panics.
func TestMisuse(t *testing.T) {
	r := newRig(t)
	p, err := r.dev.Alloc(16)
	r.must(err)
	k := r.load(program(0, ""))("k")
	other := newRig(t)
	ev, err := other.dev.NewEvent()
	other.must(err)
	for name, err := range map[string]error{
		"alloc of nothing":      second(r.dev.Alloc(0)),
		"fill of odd bytes":     r.s.Fill(p, 1, 6),
		"copy of -1":            r.s.CopyDevice(p, p, -1),
		"kernel of another":     other.s.Launch(k, one(1), nil),
		"event of another":      r.s.Record(ev),
		"wait for another's":    r.s.Wait(ev),
		"unregister of unknown": r.dev.Unregister(make([]byte, 4)),
		"free of unknown":       r.dev.HostFree(make([]byte, 4)),
		"host alloc of nothing": second(r.dev.HostAlloc(0)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	r.must(r.s.CopyIn(p, make([]byte, 17)))
	if err := r.s.Synchronize(); !errors.Is(err, device.ErrLaunchFailed) {
		t.Errorf("copy over the end: %v", err)
	}
	r.must(r.s.Fill(p, 1, 16))
	r.must(r.s.Synchronize())
	r.must(r.s.CopyOut(make([]byte, 16), p))
	r.must(r.dev.Free(p))
	_ = r.s.Synchronize() // it may fail or not: the copy may have run before the free
	b, err := r.dev.HostAlloc(64)
	r.must(err)
	if err := r.dev.Register(b); err == nil {
		t.Error("page-locked twice")
	}
	r.must(r.dev.HostFree(b))
	r.must(r.dev.Register(b))
	r.must(r.dev.Unregister(b))
}

func second[T any](_ T, err error) error { return err }

// TestModules tests kernels by name, that variables are freed, and that
// nothing launches after unload.
func TestModules(t *testing.T) {
	r := newRig(t)
	before, err := r.dev.FreeBytes()
	r.must(err)
	source := program(0, "") + ".global .align 8 .b8 x[1000];\n"
	m, err := r.dev.Load(source)
	r.must(err)
	if _, err := m.Kernel("nobody"); !errors.Is(err, device.ErrBadKernel) {
		t.Errorf("unknown kernel: %v", err)
	}
	k, err := m.Kernel("k")
	r.must(err)
	if k.Name() != "k" {
		t.Errorf("name %q", k.Name())
	}
	r.must(r.s.Launch(k, one(1), nil))
	r.must(r.s.Synchronize())
	r.must(m.Unload())
	if err := r.s.Launch(k, one(1), nil); err == nil {
		t.Error("launched after unload")
	}
	if m.Unload() == nil {
		t.Error("unloaded twice")
	}
	if after, _ := r.dev.FreeBytes(); after != before {
		t.Errorf("%d bytes free, %d before", after, before)
	}
}

// TestClosed tests that a closed device is lost.
func TestClosed(t *testing.T) {
	r := newRig(t)
	if info := r.dev.Info(); info.Name != "PTX interpreter" || info.Capability < 70 || info.TotalBytes <= 0 {
		t.Errorf("%+v", info)
	}
	ev, err := r.dev.NewEvent()
	r.must(err)
	m, err := r.dev.Load(program(0, ""))
	r.must(err)
	r.must(r.dev.Close())
	for _, err := range []error{r.dev.Close(), second(r.dev.Alloc(4)), r.s.Synchronize(), r.s.Close(), ev.Synchronize(), ev.Close(),
		second(r.dev.NewStream()), second(r.dev.NewEvent()), second(r.dev.Load("")), second(r.dev.FreeBytes()), r.dev.Register(make([]byte, 1))} {
		if !errors.Is(err, device.ErrLost) {
			t.Errorf("after Close: %v", err)
		}
	}
	r.must(m.Unload())
}
