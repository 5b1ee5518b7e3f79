package pando_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/hostmem"
	"github.com/pando-index/pando/internal/seed"
)

// limitedAddresses is set in the environment of a test that runs in a process
// of its own, with few addresses.
const limitedAddresses = "PANDO_TEST_LIMITED_ADDRESSES"

// inLimitedAddresses runs a test of this binary in a process that can map so
// many bytes beyond what a Go program has at its start. There the C library gives no
// thread 64 MiB for a malloc of its own, which it does as long as there are some, and
// then Go's heap cannot grow whoever else is there.
func inLimitedAddresses(t *testing.T, bytes int64, test string, env ...string) {
	t.Helper()
	if seed.RaceDetector {
		t.Skip("the race detector maps far more")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+test+"$")
	cmd.Env = append(append(os.Environ(), env...), "MALLOC_ARENA_MAX=1", fmt.Sprintf("%s=%d", limitedAddresses, bytes))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestMain takes addresses away before any test runs, where it is told to.
func TestMain(m *testing.M) {
	if env := os.Getenv(limitedAddresses); env != "" {
		if err := limitAddresses(env); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// limitAddresses takes addresses away from a process that has its threads: the runtime
// starts one whenever another is held up, which depends on what else the machine does,
// takes 8 MiB of addresses for it where there is cgo, and ends the process without them.
func limitAddresses(env string) error {
	var more int64
	if _, err := fmt.Sscan(env, &more); err != nil {
		return err
	}
	startThreads(earlyThreads())
	limit := uint64(addressesMapped() + more)
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit})
}

// addressesMapped returns the bytes of addresses that this process has.
func addressesMapped() int64 {
	kib, _ := hostmem.Field(hostmem.Text("/proc/self/status"), "VmSize")
	return kib << 10
}
