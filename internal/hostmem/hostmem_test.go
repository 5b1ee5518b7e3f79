package hostmem

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// What is free is the least of what the system has and what any control group leaves.
func TestFree(t *testing.T) {
	root := t.TempDir()
	proc, groups := filepath.Join(root, "proc"), filepath.Join(root, "groups")
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(spare, left int64) {
		t.Helper()
		if s, l := Spare(proc), LeftInGroups(proc, groups); s != spare || l != left {
			t.Errorf("%d and %d, want %d and %d", s, l, spare, left)
		}
	}
	const unknown = math.MaxInt64
	expect(unknown, unknown)
	write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:   1000 kB\n")
	expect(1000<<10, unknown)
	write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:   many kB\n")
	expect(unknown, unknown)
	write("proc/self/cgroup", "0::/a/b\n")
	write("groups/a/b/memory.max", "max\n")
	expect(unknown, unknown)
	write("groups/a/memory.max", "600000\n")
	expect(unknown, unknown) // nobody tells what is used
	write("groups/a/memory.current", "500000\n")
	write("groups/a/memory.stat", "anon 5\ninactive_file 50000\nactive_file 7\n")
	expect(unknown, 150007)
	write("groups/memory.max", "20")
	write("groups/memory.current", "50")
	expect(unknown, 0) // less than nothing
	write("proc/self/cgroup", "9:cpu,memory:/x\n3:cpu:/y\nnonsense\n")
	write("groups/memory/x/memory.limit_in_bytes", "9000")
	write("groups/memory/x/memory.usage_in_bytes", "5000")
	write("groups/memory/x/memory.stat", "total_inactive_file 5\n")
	expect(unknown, 4005)
}

// This machine has memory.
func TestThisMachine(t *testing.T) {
	if free := Free(); free < 0 || runtime.GOOS == "linux" && free == math.MaxInt64 {
		t.Errorf("%d bytes are free", free)
	}
}
