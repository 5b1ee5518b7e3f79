package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// ^C at any moment of a build ends it with its own exit code, and leaves the
// folder as it was: with the old index, and nothing else.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts to send")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "t.pando")
	if code := run([]string{"gen", "-n", "10", "-f", "csv", "-o", filepath.Join(folder, "t.csv")}, io.Discard, os.Stderr); code != 0 {
		t.Fatal(code)
	}
	if code := run([]string{"build", filepath.Join(folder, "t.csv"), "-o", path, "-k", "key", "-q"}, io.Discard, os.Stderr); code != 0 {
		t.Fatal(code)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(fmt.Sprint(after), func(t *testing.T) { interruptBuild(t, path, old, after) })
	}
}

// interruptBuild feeds endless rows to a build and interrupts it.
func interruptBuild(t *testing.T, path string, old []byte, after time.Duration) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "build", "-", "--format", "csv", "-o", path, "--key", "k")
	cmd.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := io.WriteString(in, "k\n")
		for i := 0; err == nil; i++ {
			_, err = fmt.Fprintln(in, i)
		}
	}()
	if _, err := said.ReadString('\n'); err != nil { // it is reading, and handles signals
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(said)
	err = cmd.Wait()
	in.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted || !bytes.Contains(rest, []byte("interrupted")) {
		t.Errorf("%v: %s", err, rest)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
		t.Errorf("the old index is not what it was: %v", err)
	}
}

// ^C also ends a command that waits for input that does not come.
func TestInterruptWhileWaiting(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts to send")
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	in := stdinOf(ctx, r)
	go w.Write([]byte("abc"))
	got := make([]byte, 10)
	if n, err := io.ReadFull(in, got[:3]); n != 3 || err != nil || string(got[:3]) != "abc" {
		t.Errorf("%q, %v", got[:n], err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	for range 2 {
		if n, err := in.Read(got); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// Input comes through complete, however it is cut, with its end or its error.
func TestStdinIsWhole(t *testing.T) {
	rng := seed.Rand(t)
	want := make([]byte, 1<<20+rng.IntN(1<<20))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	for _, in := range []io.Reader{bytes.NewReader(want), iotest.DataErrReader(bytes.NewReader(want)), iotest.HalfReader(bytes.NewReader(want))} {
		got, err := io.ReadAll(stdinOf(t.Context(), in))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(stdinOf(t.Context(), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Keys that come one by one are answered one by one: nobody waits for the next.
func TestAnswersAsKeysCome(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "t.pando")
	for _, args := range [][]string{{"gen", "-n", "10", "--dist", "dense", "-o", filepath.Join(folder, "t.u64")}, {"build", filepath.Join(folder, "t.u64"), "-o", path, "-q"}} {
		if code := run(args, io.Discard, os.Stderr); code != 0 {
			t.Fatal(args, code)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"get", "rank"} {
		cmd := exec.Command(self, command, path, "--from", "-")
		cmd.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(out)
		for range 3 {
			fmt.Fprintln(in, 7)
			if line, err := answers.ReadString('\n'); err != nil || line[0] != '7' {
				t.Fatalf("%s: %q, %v", command, line, err)
			}
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
