package files_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Tests that must die, or take away from themselves, run in a process of their
// own: the test binary again, with this variable set to what it shall do.
const childTask = "PANDO_TEST_CHILD"

// child returns the test binary as a command that does a task on a directory.
func child(task, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSaveChild$", "-test.v")
	cmd.Env = append(os.Environ(), childTask+"="+task, "PANDO_TEST_DIR="+dir)
	return cmd
}

// TestSaveChild is what child processes do.
func TestSaveChild(t *testing.T) {
	dir := os.Getenv("PANDO_TEST_DIR")
	switch os.Getenv(childTask) {
	case "save forever":
		saveForever(t, filepath.Join(dir, "index"))
	case "full disk":
		fullDisk(t, dir)
	case "file size limit":
		fileSizeLimit(t, dir)
	default:
		t.Skip("part of other tests")
	}
}

// saveForever saves one generation after the other.
func saveForever(t *testing.T, path string) {
	fmt.Println("ready")
	for g := 1; ; g++ {
		ix := generation(t, g)
		if err := ix.Save(path); err != nil {
			t.Fatal(err)
		}
		ix.Close()
	}
}

// A process that is killed at any moment of Save leaves a whole file, the old
// or the new one, and what else it leaves the next Save removes.
func TestSaveKilled(t *testing.T) {
	kills := 300
	if !seed.Long() {
		kills = 20
	}
	rng := seed.Rand(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	ix := generation(t, 0)
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	stale := 0
	for range kills {
		killed(t, dir, time.Duration(rng.IntN(8000))*time.Microsecond)
		if _, err := generationOf(path); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".pando-save-*")); len(left) > 0 {
			stale++
		}
	}
	t.Logf("%d kills, %d of them while a file was being written", kills, stale)
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	alone(t, dir, "index")
}

// killed starts a process that saves forever, and kills it.
func killed(t *testing.T, dir string, after time.Duration) {
	cmd := child("save forever", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096) // wait for its first words
	for said := ""; !strings.Contains(said, "ready"); {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("the child says %q: %v", said, err)
		}
		said += string(buf[:n])
	}
	time.Sleep(after)
	cmd.Process.Kill()
	cmd.Wait()
}

// runChild runs a child to its end.
func runChild(t *testing.T, cmd *exec.Cmd) {
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this user may not make a mount namespace: %v", err)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// On a disk without room Save gives an error, keeps the old file and leaves
// nothing: a small file system of the child's own.
func TestSaveFullDisk(t *testing.T) {
	cmd := child("full disk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	runChild(t, cmd)
}

func fullDisk(t *testing.T, dir string) {
	syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, "") // keep it from the others
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("this user may not mount a tmpfs: %v", err)
	}
	path := filepath.Join(dir, "index")
	small, large := generation(t, 0), generation(t, 6)
	if err := small.Save(path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := large.Save(path); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
			t.Errorf("no room: %v", err)
		}
		alone(t, dir, "index")
		if g, err := generationOf(path); g != 0 || err != nil {
			t.Errorf("generation %d, %v", g, err)
		}
	}
	if err := small.Save(path); err != nil { // there is still room for two of these
		t.Error(err)
	}
}

// The same, with room for less and less of the file, by the system's limit on
// the size of files.
func TestSaveFileSizeLimit(t *testing.T) {
	runChild(t, child("file size limit", t.TempDir()))
}

func fileSizeLimit(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	path := filepath.Join(dir, "index")
	old, young := generation(t, 0), generation(t, 1)
	if err := old.Save(path); err != nil {
		t.Fatal(err)
	}
	size := young.Stats().TotalBytes + 4096
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Skip(err)
	}
	for room := int64(0); room < size-4096; room += 509 {
		limit := before
		limit.Cur = uint64(room)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Skip(err)
		}
		err := young.Save(path)
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
		alone(t, dir, "index")
	}
	if g, err := generationOf(path); g != 0 || err != nil {
		t.Errorf("generation %d, %v", g, err)
	}
	if err := young.Save(path); err != nil {
		t.Error(err)
	}
}

// mappings counts the mappings of a file in this process.
func mappings(t *testing.T, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(maps), path)
}

// Files are mapped while they are open, and not after Close; an index that is
// forgotten returns its file back, and so does an Open that fails.
func TestOpenLeavesNoMapping(t *testing.T) {
	facetest.NoneInUse(t)
	path, _ := saved(t, 10_000)
	ix, err := pando.Open[uint64, string](path, stringCodec)
	if err != nil {
		t.Fatal(err)
	}
	if n := mappings(t, path); n != 1 {
		t.Errorf("%d mappings of an open file", n)
	}
	ix.Close()
	for range seed.Times(20, 100) {
		for _, o := range openers {
			if err := o.open(path); err != nil {
				t.Fatal(err)
			}
		}
		openError[uint64, string](path, stringCodec, pando.On(pando.GPU(99)))
		openError[uint64, uint64](path)
	}
	if n := mappings(t, path); n != 0 {
		t.Errorf("%d mappings after Close", n)
	}
	func() {
		forgotten, err := pando.Open[uint64, string](path, stringCodec)
		if err != nil {
			t.Fatal(err)
		}
		forgotten.GetBatch([]uint64{1, 2}, make([]string, 2), nil)
	}()
	for range 2000 { // others may keep the machine busy
		if mappings(t, path) == 0 {
			break
		}
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if n := mappings(t, path); n != 0 {
		t.Errorf("%d mappings of a forgotten index", n)
	}
	facetest.NoneInUse(t)
}

// A pipe is no file, and nobody waits for it.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	refused(t, path, pando.ErrFile, "a pipe")
	ix := generation(t, 0)
	defer ix.Close()
	if err := ix.Save(path); err == nil {
		t.Error("Save has replaced a pipe")
	}
}
