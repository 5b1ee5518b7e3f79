//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// Kernels that fail end the context of the whole process, so these tests run
// themselves again in a separate process.

// apart reports whether this is the separate process; if not, it runs it.
func apart(t *testing.T) bool {
	const mark = "CUDA_TEST_APART"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	if _, err := Devices(); err != nil {
		t.Skip("needs a GPU:", err)
	}
	exe, err := os.Executable()
	check(t, err)
	c := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), mark+"="+t.Name())
	out, err := c.CombinedOutput()
	t.Logf("in a process of its own:\n%s", out)
	check(t, err)
	return false
}

func TestIllegalAddress(t *testing.T) {
	if apart(t) {
		testFatal(t, "test_add", params(uint64(8), uint64(8), uint32(32), uint32(1)))
	}
}

func TestTrap(t *testing.T) {
	if apart(t) {
		testFatal(t, "test_trap", nil)
	}
}

// testFatal launches a kernel that kills the context, and checks that this is
// reported as a failed launch once and as a lost device from then on, by
// everything open on that GPU. Whether the GPU can be opened again in the same
// process is up to the driver, and only logged.
func testFatal(t *testing.T, name string, args []byte) {
	d := must[device.Device](t)(Open(0))
	twin := must[device.Device](t)(Open(0))
	m := must[device.Module](t)(d.Load(testPTX))
	b := bench{d, m, must[device.Stream](t)(d.NewStream())}
	check(t, b.add(100, 1))
	p := must[device.Ptr](t)(d.Alloc(100))
	e := must[device.Event](t)(d.NewEvent())
	pinned := must[[]byte](t)(d.HostAlloc(64))
	k := b.kernel(t, name)
	chain := must[device.Graph](t)(d.NewGraph(func(s device.Stream) error { return s.Fill(p, 1, 100) }))
	grown := must[device.Range](t)(d.Reserve(1 << 30))
	check(t, grown.Grow(1<<20))

	check(t, b.s.Launch(k, device.Grid{Blocks: 1, Threads: 32}, args))
	err := b.s.Synchronize()
	t.Log(err)
	wantKind(t, err, device.ErrLaunchFailed)
	for name, op := range hotOps(b.s, e, k, chain, p, pinned, args) {
		err := op()
		if !errors.Is(err, device.ErrLost) {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
	_, err = twin.Alloc(100)
	wantKind(t, err, device.ErrLost)
	wantKind(t, d.Free(p), device.ErrLost)
	wantKind(t, grown.Grow(1<<25), device.ErrLost)
	wantKind(t, grown.Free(), device.ErrLost)
	wantKind(t, chain.Close(), device.ErrLost)
	check(t, d.Close())
	check(t, twin.Close())

	again, err := Open(0)
	if err != nil {
		t.Log("not to be opened again:", err)
		return
	}
	if m, err = again.Load(testPTX); err == nil {
		b = bench{again, m, must[device.Stream](t)(again.NewStream())}
		check(t, b.add(100, 2))
	}
	t.Log("opened again, loading gave:", err)
	check(t, again.Close())
}
