package faulty_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

// copies is a device with two streams and an event, and memory full of ones.
type copies struct {
	*testing.T
	d    *faulty.Device
	a, b device.Stream
	e    device.Event
	p    device.Ptr
}

var ones = bytes.Repeat([]byte{1}, 64)

func newCopies(t *testing.T, seed uint64, p faulty.Plan) *copies {
	t.Helper()
	d := faulty.New(ptx.New(ptx.Seed(seed)), p)
	a, err1 := d.NewStream()
	b, err2 := d.NewStream()
	e, err3 := d.NewEvent()
	mem, err4 := d.Alloc(64)
	mustNot(t, errors.Join(err1, err2, err3, err4))
	mustNot(t, a.CopyIn(mem, ones))
	mustNot(t, a.Record(e))
	mustNot(t, b.Wait(e))
	return &copies{t, d, a, b, e, mem}
}

func (c *copies) out(s device.Stream) []byte {
	c.Helper()
	dst := make([]byte, 64)
	mustNot(c.T, s.CopyOut(dst, c.p))
	return dst
}

// holds checks the targets of copies: whether they have the right answers or
// are spoiled.
func (c *copies) holds(right bool, targets ...[]byte) {
	c.Helper()
	for i, b := range targets {
		if right && !bytes.Equal(b, ones) {
			c.Errorf("target %d was spoiled: %x", i, b[:8])
		}
		if !right && bytes.IndexByte(b, 1) >= 0 {
			c.Errorf("target %d has right answers: %x", i, b[:8])
		}
	}
}

// failures are the ways of waiting in which a fault may come.
var failures = map[string]func(c *copies) error{
	"stream": func(c *copies) error { return c.a.Synchronize() },
	"event":  func(c *copies) error { return c.e.Synchronize() },
	"since":  func(c *copies) error { _, err := c.e.Since(c.e); return err },
	"other":  func(c *copies) error { return errors.Join(c.b.Wait(c.e), c.b.Synchronize()) },
}

// Under every schedule, a failed wait leaves no right answer in what it waited
// for; what was waited for before, and what is not part of it, is unchanged.
func TestFailedWaitSpoils(t *testing.T) {
	for name, fail := range failures {
		for seed := range uint64(40) {
			c := newCopies(t, seed, faulty.Plan{Op: faulty.Synchronize, At: 2})
			before := c.out(c.a)
			mustNot(t, c.a.Synchronize())
			waited := [][]byte{c.out(c.a), c.out(c.a)}
			mustNot(t, c.a.Record(c.e))
			apart := c.out(c.b)
			if err := fail(c); !errors.Is(err, device.ErrLaunchFailed) {
				t.Fatalf("%s: %v", name, err)
			}
			c.holds(true, before)
			c.holds(false, waited...)
			if name != "other" {
				mustNot(t, c.b.Synchronize())
				c.holds(true, apart)
			}
			ruins := bytes.Clone(waited[0])
			after := c.out(c.a)
			mustNot(t, errors.Join(c.a.Synchronize(), c.b.Synchronize()))
			c.holds(true, after)
			if !bytes.Equal(ruins, waited[0]) {
				t.Fatalf("%s, seed %d: work went on after the failure", name, seed)
			}
			mustNot(t, c.d.Close())
		}
	}
}

// A caller that has waited, in whatever way, has answers that no later fault
// takes away; everything that nobody waited for is spoiled by the loss.
func TestLossSpoilsWhatIsUnderWay(t *testing.T) {
	for name, wait := range failures {
		for seed := range uint64(40) {
			c := newCopies(t, seed, faulty.Plan{Op: faulty.FreeBytes, At: 1, Lose: true})
			done := c.out(c.a)
			mustNot(t, c.a.Record(c.e))
			for wait(c) != nil { // the interpreter's Since does not wait by itself
				mustNot(t, c.b.CopyDevice(c.p, c.p, 0))
			}
			under := [][]byte{c.out(c.a), c.out(c.b)}
			if _, err := c.d.FreeBytes(); !errors.Is(err, device.ErrLost) {
				t.Fatal(err)
			}
			c.holds(true, done)
			c.holds(false, under...)
			mine := bytes.Repeat([]byte{2}, 64)
			copy(under[0], mine) // the caller fills in the answer itself
			if c.a.Synchronize() == nil || c.a.Close() == nil || c.b.Close() == nil || c.d.Close() == nil {
				t.Fatal("a lost device works")
			}
			if !bytes.Equal(under[0], mine) {
				t.Fatalf("%s, seed %d: work went on after the loss", name, seed)
			}
		}
	}
}

// The target of a failed copy is spoiled, and no longer belongs to the device.
func TestFailedCopySpoils(t *testing.T) {
	c := newCopies(t, 1, faulty.Plan{Op: faulty.CopyOut, At: 1})
	dst := bytes.Clone(ones)
	if err := c.a.CopyOut(dst, c.p); !errors.Is(err, device.ErrLaunchFailed) {
		t.Fatal(err)
	}
	c.holds(false, dst)
	copy(dst, ones)
	mustNot(t, errors.Join(c.a.Synchronize(), c.d.Close()))
	c.holds(true, dst)
}

// A copy that failed in the wrapped device is over: a later fault leaves its
// target alone.
func TestCopyFailedBelow(t *testing.T) {
	below := faulty.New(ptx.New(), faulty.Plan{Op: faulty.CopyOut, At: 1})
	d := faulty.New(below, faulty.Plan{Op: faulty.Synchronize, At: 1})
	s, err := d.NewStream()
	mustNot(t, err)
	p, err := d.Alloc(64)
	mustNot(t, err)
	dst := make([]byte, 64)
	if s.CopyOut(dst, p) == nil {
		t.Fatal("no fault below")
	}
	copy(dst, ones) // the caller fills in the answer itself
	if s.Synchronize() == nil {
		t.Fatal("no fault")
	}
	if !bytes.Equal(dst, ones) {
		t.Error("spoiled")
	}
}

// Freed memory is left alone: it may no longer exist.
func TestFreedMemoryIsNotSpoiled(t *testing.T) {
	c := newCopies(t, 1, faulty.Plan{Op: faulty.Synchronize, At: 1})
	host, err := c.d.HostAlloc(64)
	mustNot(t, err)
	mustNot(t, c.a.CopyOut(host[8:16], c.p))
	kept := c.out(c.a)
	mustNot(t, c.d.HostFree(host))
	if c.a.Synchronize() == nil {
		t.Fatal("no fault")
	}
	if bytes.IndexByte(host, 0xa5) >= 0 {
		t.Error("memory was spoiled after HostFree")
	}
	c.holds(false, kept)
}

// Many goroutines share a device that fails at some operation, or is lost.
// Each gets either an error or right answers, and nothing is left behind.
func TestGoroutinesMeetAFault(t *testing.T) {
	const goroutines = 6
	rng := seed.Rand(t)
	d := faulty.New(ptx.New(), faulty.Plan{})
	mustNot(t, (&job{d: d}).run())
	all := goroutines * d.Count(faulty.Any)
	for range 60 {
		below := ptx.New(ptx.Seed(rng.Uint64()))
		p := faulty.Plan{At: 1 + rng.IntN(all), Lose: rng.IntN(2) == 0}
		failed := together(t, goroutines, faulty.New(below, p))
		if failed == 0 || !p.Lose && failed > 1 {
			t.Errorf("%+v: %d of %d jobs failed", p, failed, goroutines)
		}
		if free, err := below.FreeBytes(); err != nil || free != below.Info().TotalBytes {
			t.Errorf("%+v: %d bytes free below, %v", p, free, err)
		}
	}
}

// together runs jobs concurrently and returns how many had an error.
func together(t *testing.T, n int, d *faulty.Device) (failed int) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = (&job{d: d}).run() })
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			continue
		}
		failed++
		if !errors.Is(err, device.ErrLost) && !errors.Is(err, device.ErrLaunchFailed) &&
			!errors.Is(err, device.ErrOutOfMemory) && !errors.Is(err, device.ErrBadKernel) {
			t.Error("wrong answers without an error:", err)
		}
	}
	if d.Live() != 0 {
		t.Errorf("%d are left", d.Live())
	}
	return failed
}

// A device that lies reports success from the planned operation on, and has done
// nothing: kernels have not run, and copies are nonsense, the same each time.
func TestLies(t *testing.T) {
	work := func(p faulty.Plan) []byte {
		d := faulty.New(ptx.New(), p)
		m := got[device.Module](t)(d.Load(addPTX))
		add := got[device.Kernel](t)(m.Kernel("add"))
		at := got[device.Ptr](t)(d.Alloc(4 * words))
		s := got[device.Stream](t)(d.NewStream())
		out := make([]byte, 4*words)
		mustNot(t, s.Fill(at, 0x03030303, 4*words))
		for range 2 {
			mustNot(t, s.Launch(add, device.Grid{Blocks: 1, Threads: words}, params(at, 0x03030303)))
		}
		mustNot(t, s.CopyOut(out, at))
		mustNot(t, s.Synchronize())
		mustNot(t, d.Close())
		return out
	}
	for at, want := range []byte{9, 3, 6} { // 0: nothing is a lie
		if out := work(faulty.Plan{Op: faulty.Launch, At: at, Lie: true}); !bytes.Equal(out, bytes.Repeat([]byte{want}, 4*words)) {
			t.Errorf("kernels from number %d on do not run: %v", at, out)
		}
	}
	lie := faulty.Plan{Op: faulty.CopyOut, At: 1, Lie: true}
	if out := work(lie); bytes.Equal(out, bytes.Repeat([]byte{9}, 4*words)) || !bytes.Equal(out, work(lie)) {
		t.Errorf("a lie of a copy is %v", out)
	}
}
