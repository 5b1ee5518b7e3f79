//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// sentinels are all errors that an error can wrap.
var sentinels = []error{device.ErrNoDriver, device.ErrNoDevice, device.ErrOutOfMemory,
	device.ErrLaunchFailed, device.ErrLost, device.ErrBadKernel, device.ErrUnsupported}

// wantKind checks that an error wraps this sentinel and no other.
func wantKind(t *testing.T, err, want error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, s := range sentinels {
		if errors.Is(err, s) != (s == want) {
			t.Errorf("errors.Is(%q, %q) = %v", err, s, s != want)
		}
	}
}

func open(t testing.TB, d *driver, ordinal int) *gpu {
	t.Helper()
	g, err := d.open(ordinal)
	if err != nil {
		t.Fatal(err)
	}
	return g.(*gpu)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoLibrary(t *testing.T) {
	_, err := load("libno-such-driver.so.7")
	wantKind(t, err, device.ErrNoDriver)
	_, err = load("libc.so.6") // a library, but not a driver
	wantKind(t, err, device.ErrNoDriver)
}

// On any machine, Devices either lists GPUs that can be opened, or returns one
// of the two errors for having none.
func TestThisMachine(t *testing.T) {
	infos, err := Devices()
	switch {
	case err == nil && len(infos) == 0:
		t.Fatal("neither GPUs nor an error")
	case err != nil && !errors.Is(err, device.ErrNoDriver) && !errors.Is(err, device.ErrNoDevice):
		t.Fatal(err)
	}
	t.Log(infos, err)
}

func TestInitFailures(t *testing.T) {
	_, d := newFake(t, 0)
	wantKind(t, d.init(), device.ErrNoDevice)
	if err := d.init(); !errors.Is(err, device.ErrNoGPU) {
		t.Error(err)
	}
	f, d := newFake(t, 1)
	check(t, d.init())
	for _, r := range []result{3, 34, 46, 802, 803, 804, 999} {
		f.failWith(func(entry, int) result { return r })
		wantKind(t, d.init(), device.ErrNoDriver)
	}
}

func TestDevicesOfDriver(t *testing.T) {
	_, d := newFake(t, 3)
	infos := must[[]device.Info](t)(d.devices())
	want := device.Info{Name: "Fake GPU", Driver: infos[0].Driver, Capability: 90, Processors: 132, L2Bytes: 50 << 20, TotalBytes: 1 << 30}
	if !slices.Equal(infos, []device.Info{want, want, want}) || !strings.Contains(want.Driver, "CUDA 12.4") {
		t.Fatal(infos)
	}
	for _, ordinal := range []int{-1, 3, 1 << 32, -1 << 63} {
		_, err := d.open(ordinal)
		wantKind(t, err, device.ErrNoDevice)
	}
}

// Every result of the driver, from a call that does not interpret it itself.
func TestResults(t *testing.T) {
	kinds := map[result]error{
		1: nil, 2: device.ErrOutOfMemory, 3: device.ErrNoDriver, 4: device.ErrLost, 46: device.ErrLost,
		100: device.ErrNoDevice, 101: device.ErrNoDevice, 200: device.ErrBadKernel, 201: device.ErrLost,
		209: device.ErrBadKernel, 214: device.ErrLost, 218: device.ErrBadKernel, 220: device.ErrLost,
		222: device.ErrBadKernel, 223: device.ErrBadKernel, 400: nil, 600: nil, 700: device.ErrLaunchFailed,
		701: device.ErrLaunchFailed, 702: device.ErrLaunchFailed, 709: device.ErrLost, 710: device.ErrLaunchFailed,
		712: nil, 714: device.ErrLaunchFailed, 715: device.ErrLaunchFailed, 716: device.ErrLaunchFailed,
		717: device.ErrLaunchFailed, 718: device.ErrLaunchFailed, 719: device.ErrLaunchFailed, 801: device.ErrUnsupported,
		802: device.ErrLost, 999: device.ErrLost, 12345: nil,
	}
	harmless := []result{1, 2, 3, 100, 101, 200, 209, 218, 222, 223, 400, 600, 701, 712, 801, 12345}
	for r, kind := range kinds {
		f, d := newFake(t, 1)
		g := open(t, d, 0)
		f.failWith(func(e entry, _ int) result {
			if e == cuMemGetInfo {
				return r
			}
			return 0
		})
		_, err := g.FreeBytes()
		wantKind(t, err, kind)
		if text := err.Error(); !strings.Contains(text, "cuMemGetInfo_v2") || strings.Contains(text, "FAKE") != (r != 12345) {
			t.Errorf("%d: %q", r, text)
		}
		_, err = g.Alloc(100)
		if slices.Contains(harmless, r) {
			check(t, err)
		} else {
			wantKind(t, err, device.ErrLost)
		}
		check(t, g.Close())
	}
}

// What the failure of a call means if the result itself does not tell.
func TestBlame(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	m := must[device.Module](t)(g.Load("code"))
	k := must[device.Kernel](t)(m.Kernel("k"))
	s := must[device.Stream](t)(g.NewStream())

	_, err := m.Kernel("?")
	wantKind(t, err, device.ErrBadKernel)
	if !strings.Contains(err.Error(), "kernel ?") {
		t.Error("the kernel's name is missing:", err)
	}
	wantKind(t, s.Launch(k, device.Grid{Blocks: 1, Threads: 2000}, nil), device.ErrLaunchFailed)
	wantKind(t, s.Launch(k, device.Grid{Blocks: 1, Threads: 32, Shared: fakeMostShared + 1}, nil), device.ErrLaunchFailed)
	_, err = g.Alloc(1<<30 + 1)
	wantKind(t, err, device.ErrOutOfMemory)
	if _, live := f.state(); live != 2 {
		t.Error("failed calls left", live, "things")
	}
	check(t, g.Close())
}

func TestCompilerMessages(t *testing.T) {
	_, d := newFake(t, 1)
	g := open(t, d, 0)
	_, err := g.Load("! not code")
	wantKind(t, err, device.ErrBadKernel)
	if !strings.Contains(err.Error(), "line 1; fatal: no !\nxxx") {
		t.Error("the compiler's message is missing:", err)
	}
	_, err = g.Load("a zero \x00 byte")
	wantKind(t, err, device.ErrBadKernel)
	check(t, g.Close())
}

// hollow returns a driver whose every function is pthread_condattr_destroy of
// the C library, which ignores its arguments and returns 0: callbacks into Go
// would allocate.
func hollow(t testing.TB) *driver {
	lib := must[uintptr](t)(purego.Dlopen("libc.so.6", purego.RTLD_NOW))
	address := must[uintptr](t)(purego.Dlsym(lib, "pthread_condattr_destroy"))
	d := &driver{contexts: map[int]*context{}}
	for e := range d.address {
		d.address[e] = address
	}
	return d
}

// hot returns the operations that must not allocate, on objects made by hand:
// a hollow driver makes none.
func hot(t testing.TB) map[string]func() error {
	g := &gpu{context: &context{driver: hollow(t), handle: [1]uintptr{1}}}
	g.open.value = 1
	s, e, m := &stream{gpu: g}, &event{gpu: g}, &module{gpu: g}
	s.value, e.value, m.value = 1, 1, 1
	s.launch.init()
	k := &kernel{module: m, function: 1}
	chain := &graph{gpu: g, modules: []*module{m}}
	chain.value = 1
	return hotOps(s, e, k, chain, 1<<20, make([]byte, 64), make([]byte, 64))
}

func hotOps(s device.Stream, e device.Event, k device.Kernel, g device.Graph, p device.Ptr, host, params []byte) map[string]func() error {
	return map[string]func() error{
		"Start":             func() error { return s.Start(g) },
		"Launch":            func() error { return s.Launch(k, device.Grid{Blocks: 2, Threads: 32}, params) },
		"CopyIn":            func() error { return s.CopyIn(p, host) },
		"CopyOut":           func() error { return s.CopyOut(host, p) },
		"CopyDevice":        func() error { return s.CopyDevice(p, p+64, 64) },
		"Fill":              func() error { return s.Fill(p, 7, 64) },
		"Record":            func() error { return s.Record(e) },
		"Wait":              func() error { return s.Wait(e) },
		"Synchronize":       s.Synchronize,
		"Event.Synchronize": e.Synchronize,
	}
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	wantNoAllocs(t, hot(t))
}

func wantNoAllocs(t *testing.T, ops map[string]func() error) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget, so calls allocate")
	}
	for name, op := range ops {
		check(t, op())
		if n := testing.AllocsPerRun(500, func() { _ = op() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// BenchmarkCall measures what this package adds to a launch: two calls into C
// that do next to nothing.
func BenchmarkCall(b *testing.B) {
	launch := hot(b)["Launch"]
	b.ReportAllocs()
	for b.Loop() {
		if err := launch(); err != nil { // not check: Helper costs more than the call
			b.Fatal(err)
		}
	}
}
