//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// The tests in this file need a GPU and are skipped without one.

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S testdata/test.cu -o testdata/test.ptx

//go:embed testdata/test.ptx
var testPTX string

// realGPU opens the first GPU, or skips the test.
func realGPU(t testing.TB) device.Device {
	t.Helper()
	if _, err := Devices(); err != nil {
		t.Skip("needs a GPU:", err)
	}
	d := must[device.Device](t)(Open(0))
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

// bench is the setup that most tests need.
type bench struct {
	d device.Device
	m device.Module
	s device.Stream
}

func newBench(t testing.TB) bench {
	t.Helper()
	d := realGPU(t)
	return bench{d, must[device.Module](t)(d.Load(testPTX)), must[device.Stream](t)(d.NewStream())}
}

func (b bench) kernel(t testing.TB, name string) device.Kernel {
	t.Helper()
	return must[device.Kernel](t)(b.m.Kernel(name))
}

// params lays out values as PTX does, each at its natural alignment.
func params(values ...any) []byte {
	var b []byte
	for _, v := range values {
		for len(b)%binary.Size(v) != 0 {
			b = append(b, 0xee) // padding has no meaning; make it different from 0
		}
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// words returns host memory as 32-bit values.
func words(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// read copies 32-bit values out and waits for them.
func (b bench) read(t testing.TB, p device.Ptr, n int) []uint32 {
	t.Helper()
	host := make([]byte, 4*n)
	check(t, b.s.CopyOut(host, p))
	check(t, b.s.Synchronize())
	return words(host)
}

func TestInfo(t *testing.T) {
	realGPU(t)
	infos := must[[]device.Info](t)(Devices())
	for i, info := range infos {
		t.Logf("%d: %+v", i, info)
		if info.Name == "" || strings.ContainsRune(info.Name, 0) || info.Driver == "" || info.Capability < 10 ||
			info.Processors < 1 || info.L2Bytes < 1 || info.TotalBytes < 1<<20 {
			t.Error("not a GPU")
		}
		d := must[device.Device](t)(Open(i))
		if d.Info() != info {
			t.Errorf("open, it says %+v", d.Info())
		}
		if free := must[int64](t)(d.FreeBytes()); free < 1 || free > info.TotalBytes {
			t.Error("free bytes:", free)
		}
		check(t, d.Close())
	}
	for _, ordinal := range []int{-1, len(infos), 1 << 32} {
		_, err := Open(ordinal)
		wantKind(t, err, device.ErrNoDevice)
	}
}

func TestRoundTrips(t *testing.T) {
	d := realGPU(t)
	for _, n := range []int{16, 1 << 10, 1 << 20} {
		testCopies(t, d, n)
	}
}

func TestParameters(t *testing.T) {
	b := newBench(t)
	out := must[device.Ptr](t)(b.d.Alloc(40))
	check(t, b.s.Launch(b.kernel(t, "test_echo"), device.Grid{Blocks: 2, Threads: 64},
		params(uint8(0xa1), uint64(out), uint16(0xb2b3), uint32(0xc4c5c6c7), uint8(0xd8), uint64(0xe9eaebecedeeeff0))))
	got := b.read(t, out, 10)
	if want := []uint32{0xa1, 0, 0xb2b3, 0, 0xc4c5c6c7, 0, 0xd8, 0, 0xedeeeff0, 0xe9eaebec}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	check(t, b.s.Launch(b.kernel(t, "test_nothing"), device.Grid{Blocks: 1, Threads: 1}, nil))
	check(t, b.s.Synchronize())
}

// add runs test_add over n words, and checks each of them and the one after.
func (b bench) add(n int, value uint32) error {
	k, err1 := b.m.Kernel("test_add")
	p, err2 := b.d.Alloc(4*n + 4)
	host, err3 := b.d.HostAlloc(4*n + 4)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	const guard = 0xabcdabcd
	for i := range n {
		binary.LittleEndian.PutUint32(host[4*i:], uint32(i)*2654435761)
	}
	err := errors.Join(
		b.s.Fill(p+device.Ptr(4*n), guard, 4),
		b.s.CopyIn(p, host[:4*n]),
		b.s.Launch(k, device.Grid{Blocks: (n + 127) / 128, Threads: 128}, params(uint64(p), uint64(p), uint32(n), value)),
		b.s.CopyOut(host, p),
		b.s.Synchronize())
	if err != nil {
		return err
	}
	got := words(host)
	for i, g := range got[:n] {
		if g != uint32(i)*2654435761+value {
			return fmt.Errorf("size %d, word %d: %#x", n, i, g)
		}
	}
	if got[n] != guard {
		return fmt.Errorf("size %d: written past the end", n)
	}
	return errors.Join(b.d.HostFree(host), b.d.Free(p))
}

func TestKernels(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{1, 2, 127, 128, 129, 1000, 1 << 20} {
		check(t, b.add(n, 77))
	}
}

// Shared memory beyond 48 KiB is granted, too much is refused, and the refusal
// does no harm.
func TestSharedMemory(t *testing.T) {
	b := newBench(t)
	k := b.kernel(t, "test_shared")
	const blocks = 5
	out := must[device.Ptr](t)(b.d.Alloc(blocks * 64 << 10))
	for _, bytes := range []int{4, 48 << 10, 64 << 10, 1 << 10} {
		n := bytes / 4
		grid := device.Grid{Blocks: blocks, Threads: 256, Shared: bytes}
		check(t, b.s.Launch(k, grid, params(uint64(out), uint32(n))))
		for i, g := range b.read(t, out, blocks*n) {
			if g != uint32(n-1-i%n) {
				t.Fatalf("%d bytes, word %d: %d", bytes, i, g)
			}
		}
	}
	err := b.s.Launch(k, device.Grid{Blocks: 1, Threads: 32, Shared: 1 << 24}, params(uint64(out), uint32(1)))
	wantKind(t, err, device.ErrLaunchFailed)
	err = b.s.Launch(k, device.Grid{Blocks: 1, Threads: 1025}, params(uint64(out), uint32(1)))
	wantKind(t, err, device.ErrLaunchFailed)
	t.Log(err)
	check(t, b.add(1000, 3))
}

func TestOccupancy(t *testing.T) {
	b := newBench(t)
	k := b.kernel(t, "test_shared")
	few := must[int](t)(Occupancy(k, 128, 40<<10))
	many := must[int](t)(Occupancy(k, 128, 1<<10))
	if few < 1 || many <= few {
		t.Errorf("blocks a multiprocessor: %d with much shared memory, %d with little", few, many)
	}
	t.Log(few, many)
}

func TestPersist(t *testing.T) {
	b := newBench(t)
	p := must[device.Ptr](t)(b.d.Alloc(1 << 24))
	err := b.s.(device.Persister).Persist(p, 1<<24)
	if b.d.Info().Capability < 80 {
		t.Skip("needs compute capability 8.0:", err)
	}
	check(t, err)
	check(t, b.add(100000, 9))
	check(t, b.s.(device.Persister).Persist(0, 0))
	check(t, b.add(100000, 10))
}

func TestBadCode(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		"empty":       "",
		"prose":       "this is not a kernel",
		"instruction": strings.Replace(testPTX, "bar.sync", "bar.sunk", 1),
		"register":    strings.Replace(testPTX, "\tsetp.ge.u32 \t%p1, %r6", "\tsetp.ge.u32 \t%p1, %rx6", 1),
		"version":     strings.Replace(testPTX, ".version 7.0", ".version 99.0", 1),
		"cut":         testPTX[:strings.LastIndex(testPTX, "ret;")],
	} {
		_, err := b.d.Load(text)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantKind(t, err, device.ErrBadKernel)
		t.Logf("%s: %v", name, err)
		if (name == "instruction" || name == "register") && !strings.Contains(err.Error(), "line") {
			t.Errorf("%s: no message of the compiler in %q", name, err)
		}
	}
	_, err := b.m.Kernel("test_absent")
	wantKind(t, err, device.ErrBadKernel)
	check(t, b.add(1000, 4))
}

func TestOutOfMemory(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{int(b.d.Info().TotalBytes), 1 << 50} {
		_, err := b.d.Alloc(n)
		wantKind(t, err, device.ErrOutOfMemory)
		t.Log(err)
	}
	check(t, b.add(1000, 5))
}

// A Device frees its memory when it is closed, and only its own.
func TestCloseFreesMemory(t *testing.T) {
	b := newBench(t)
	other := must[device.Device](t)(Open(0))
	const size = 256 << 20
	must[device.Ptr](t)(other.Alloc(size))
	held := must[int64](t)(b.d.FreeBytes())
	check(t, other.Close())
	if free := must[int64](t)(b.d.FreeBytes()); free < held+size/2 {
		t.Errorf("%d bytes free before Close, %d after", held, free)
	}
	if _, err := other.Alloc(1); err == nil {
		t.Error("a closed device allocates")
	}
	check(t, b.add(1000, 6))
}

// Work in a second stream waits for an event of the first, whose kernel takes
// long; in between is a copy to page-locked memory.
func TestStreamsAndEvents(t *testing.T) {
	b := newBench(t)
	second := must[device.Stream](t)(b.d.NewStream())
	begin, end := must[device.Event](t)(b.d.NewEvent()), must[device.Event](t)(b.d.NewEvent())
	p := must[device.Ptr](t)(b.d.Alloc(8))
	host := must[[]byte](t)(b.d.HostAlloc(4))
	late, add := b.kernel(t, "test_late"), b.kernel(t, "test_add")
	for round := range uint32(20) {
		check(t, b.s.Record(begin))
		check(t, b.s.Launch(late, device.Grid{Blocks: 1, Threads: 32}, params(uint64(p), round, uint64(5e6))))
		check(t, b.s.Record(end))
		check(t, second.Wait(end))
		check(t, second.Launch(add, device.Grid{Blocks: 1, Threads: 32}, params(uint64(p+4), uint64(p), uint32(1), uint32(1000))))
		check(t, second.CopyOut(host, p+4))
		check(t, second.Synchronize())
		if got := words(host)[0]; got != round+1000 {
			t.Fatalf("round %d: %d", round, got)
		}
		if ms := must[float64](t)(end.Since(begin)); ms <= 0 {
			t.Fatal("the kernel took", ms, "ms")
		}
	}
}

// Since waits for the events itself; an event never recorded is an error, and
// so is any call after Close.
func TestEventEdges(t *testing.T) {
	b := newBench(t)
	begin, end := must[device.Event](t)(b.d.NewEvent()), must[device.Event](t)(b.d.NewEvent())
	check(t, begin.Synchronize())
	if ms, err := end.Since(begin); err == nil {
		t.Error("time between events that never were:", ms)
	}
	p := must[device.Ptr](t)(b.d.Alloc(4))
	check(t, b.s.Record(begin))
	check(t, b.s.Launch(b.kernel(t, "test_late"), device.Grid{Blocks: 1, Threads: 1}, params(uint64(p), uint32(1), uint64(5e6))))
	check(t, b.s.Record(end))
	t.Log(must[float64](t)(end.Since(begin)), "ms for 5 million clocks")
	check(t, begin.Close())
	check(t, begin.Close())
	if _, err := end.Since(begin); err == nil {
		t.Error("a closed event tells time")
	}
	if b.s.Record(begin) == nil || b.s.Wait(begin) == nil {
		t.Error("a closed event was taken")
	}
	check(t, b.s.Close())
	if b.s.Synchronize() == nil {
		t.Error("a closed stream was waited for")
	}
}

func TestGoroutinesAtOnce(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			s, err := b.d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			own := bench{b.d, b.m, s}
			for j := range 5 {
				if err := errors.Join(own.add(1+17*i, uint32(i*j)), own.add(5000, 1)); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// If a device is closed while goroutines launch on it, they get errors,
// nothing worse.
func TestCloseUnderLoad(t *testing.T) {
	b := newBench(t)
	k := b.kernel(t, "test_nothing")
	var wg sync.WaitGroup
	started := make(chan struct{}, 8)
	for range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				if b.s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, nil) != nil {
					return
				}
				if n == 100 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-started
	}
	check(t, b.d.Close())
	wg.Wait()
}

func TestHotCallsDoNotAllocateOnGPU(t *testing.T) {
	b := newBench(t)
	e := must[device.Event](t)(b.d.NewEvent())
	p := must[device.Ptr](t)(b.d.Alloc(1 << 10))
	host := must[[]byte](t)(b.d.HostAlloc(64))
	chain := must[device.Graph](t)(b.d.NewGraph(func(s device.Stream) error { return s.Fill(p, 1, 64) }))
	wantNoAllocs(t, hotOps(b.s, e, b.kernel(t, "test_add"), chain, p, host, params(uint64(p), uint64(p), uint32(16), uint32(1))))
	check(t, b.s.Synchronize())
}

// BenchmarkLaunch measures what a launch costs the caller, in a stream that is
// never full.
func BenchmarkLaunch(b *testing.B) {
	n := newBench(b)
	p := must[device.Ptr](b)(n.d.Alloc(64))
	k, args := n.kernel(b, "test_add"), params(uint64(p), uint64(p), uint32(16), uint32(1))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := n.s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, args); err != nil {
			b.Fatal(err)
		}
		if i%256 == 255 {
			b.StopTimer()
			check(b, n.s.Synchronize())
			b.StartTimer()
		}
	}
}

// BenchmarkLaunchAndWait measures the minimum time from a launch until it is
// known to be done.
func BenchmarkLaunchAndWait(b *testing.B) {
	n := newBench(b)
	k := n.kernel(b, "test_nothing")
	b.ReportAllocs()
	for b.Loop() {
		if err := n.s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, nil); err != nil {
			b.Fatal(err)
		}
		if err := n.s.Synchronize(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCopy copies 64 MiB each way through each kind of host memory.
func BenchmarkCopy(b *testing.B) {
	const size = 64 << 20
	n := newBench(b)
	p := must[device.Ptr](b)(n.d.Alloc(size))
	mapped := arena(b, size)
	check(b, n.d.Register(mapped))
	defer func() { check(b, n.d.Unregister(mapped)) }()
	for name, host := range map[string][]byte{"heap": make([]byte, size), "pinned": must[[]byte](b)(n.d.HostAlloc(size)), "registered": mapped} {
		for way, op := range map[string]func() error{
			"in":  func() error { return n.s.CopyIn(p, host) },
			"out": func() error { return n.s.CopyOut(host, p) },
		} {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					check(b, op())
					check(b, n.s.Synchronize())
				}
			})
		}
	}
}
