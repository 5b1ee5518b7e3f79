package pando_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// limitedAddresses is set in the environment of a test that runs in a process
// of its own, with few addresses.
const limitedAddresses = "PANDO_TEST_LIMITED_ADDRESSES"

// inLimitedAddresses runs a test of this binary in a process that can map so
// many bytes beyond what a Go program has at its start.
func inLimitedAddresses(t *testing.T, bytes int64, test string) {
	t.Helper()
	if seed.RaceDetector {
		t.Skip("the race detector maps far more")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", limitedAddresses, bytes))
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

func limitAddresses(env string) error {
	var more, pages uint64
	if _, err := fmt.Sscan(env, &more); err != nil {
		return err
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(strings.Fields(string(statm))[0], &pages); err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + more
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit})
}
