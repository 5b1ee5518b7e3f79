package linked

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// mostBytes is the size of a small program at most.
const mostBytes = 6_000_000

// What is in a program with a driver, and in no other.
var gpuOnly = []string{"ebitengine/purego", "libcuda.so.1", ".visible .entry"}

// What is in a program that imports package pandostore, and in no other.
var storeOnly = []string{"pandostore", "index.(*Columns)", "index.(*Gathering)"}

// What is in a program that imports package pandocluster, and in no other.
var clusterOnly = []string{"hashicorp/raft", "pandocluster"}

// build builds a program, in a folder where nothing else is, and returns its path.
func build(t *testing.T, program string, env ...string) (path string) {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no Go here to build a program: ", err)
	}
	path = filepath.Join(t.TempDir(), "program")
	cmd := exec.Command(tool, "build", "-o", path, "./testdata/"+program)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// dynamic returns what a program asks the system's linker for; nothing if it is static.
func dynamic(t *testing.T, path string) (asks []string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			asks = append(asks, p.Type.String())
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return append(asks, libraries...)
}

// alone returns what a program prints in a root folder that has nothing but it.
func alone(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("/" + filepath.Base(path))
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: filepath.Dir(path)}
	if os.Geteuid() != 0 { // then a user namespace of its own allows it
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("the system lets nobody have a root folder of their own: ", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestStatic(t *testing.T) {
	for _, cgo := range []string{"CGO_ENABLED=1", "CGO_ENABLED=0"} {
		t.Run(cgo, func(t *testing.T) {
			if cgo == "CGO_ENABLED=0" && !seed.Long() {
				t.Skip("the library is compiled once more for this")
			}
			path := build(t, "without", cgo)
			if asks := dynamic(t, path); len(asks) > 0 {
				t.Errorf("the program asks for %v", asks)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range slices.Concat(gpuOnly, storeOnly, clusterOnly) {
				if bytes.Contains(text, []byte(s)) {
					t.Errorf("the program has %q in it", s)
				}
			}
			if len(text) > mostBytes {
				t.Errorf("the program has %d bytes, more than %d", len(text), mostBytes)
			}
			want := "<nil>\n5 true\ncpu no GPU driver is linked; import _ \"github.com/pando-index/pando/cuda\"\n<nil> <nil>\n2 true\n"
			if got := alone(t, path); got != want {
				t.Errorf("the program prints\n%swant\n%s", got, want)
			}
		})
	}
}

// With the import, the store is there: the names that others must not have are right.
func TestWithStore(t *testing.T) {
	text, err := os.ReadFile(build(t, "store"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range storeOnly {
		if !bytes.Contains(text, []byte(s)) {
			t.Errorf("the program does not have %q in it", s)
		}
	}
	for _, s := range slices.Concat(gpuOnly, clusterOnly) {
		if bytes.Contains(text, []byte(s)) {
			t.Errorf("the program has %q in it", s)
		}
	}
}

// With the import, the driver is there.
func TestWithDriver(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("there is no driver for this machine")
	}
	path := build(t, "with")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range gpuOnly {
		if !bytes.Contains(text, []byte(s)) {
			t.Errorf("the program does not have %q in it", s)
		}
	}
	out, err := exec.Command(path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "5 true\n") || strings.Contains(string(out), "import _") {
		t.Errorf("%v\n%s", err, out)
	}
}
