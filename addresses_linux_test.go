package pando_test

import (
	"debug/elf"
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

// A program that nobody has prepared for it runs with few addresses, too: they are taken
// before it begins, as by ulimit -v in a shell, so that its threads and the heap that it
// starts with have to come out of them.
func TestLimited(t *testing.T) {
	if kind := os.Getenv(limitedKind); kind != "" {
		inFewAddresses(t, kind, 1<<30)
		return
	}
	if seed.RaceDetector {
		t.Skip("the race detector maps far more")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kib := 1_000_000
	if linksC(t, exe) {
		kib = 4_000_000 // 72 MiB go to the stack and the malloc of each thread
	}
	for _, kind := range []string{"numbers", "strings"} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, kib), exe, "-test.run=^TestLimited$")
		cmd.Env = append(os.Environ(), limitedKind+"="+kind, "GOMAXPROCS=16")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
	}
}

// linksC reports whether a program is linked with the C library.
func linksC(t *testing.T, program string) bool {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return len(libraries) > 0
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
