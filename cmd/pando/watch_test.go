package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// An index file that is cut short or written over while a command reads it makes
// one line and exit code 1, not a dump of goroutines.
func TestOverwrittenIndex(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a file that is mapped cannot be changed, or is not mapped")
	}
	for name, change := range map[string]func(path string, size int64) error{
		"cut": func(path string, _ int64) error { return os.Truncate(path, 0) },
		"other": func(path string, size int64) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err == nil {
				_, err = f.Write(bytes.Repeat([]byte{0xff}, int(size)))
				f.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { overwrite(t, change) })
	}
}

// overwrite changes an index when a command has answered the first keys.
func overwrite(t *testing.T, change func(path string, size int64) error) {
	path := filepath.Join(t.TempDir(), "t.pando")
	table := filepath.Join(t.TempDir(), "t.u64")
	for _, args := range [][]string{{"gen", "-n", "500000", "--dist", "dense", "-o", table}, {"build", table, "-o", path, "-q"}} {
		if code := run(args, io.Discard, os.Stderr); code != 0 {
			t.Fatal(args, code)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "get", path, "--from", "-")
	cmd.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
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
	changed := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(in)
		for i := range 2_000_000 {
			if i == 1_000_000 {
				w.Flush()
				changed <- change(path, info.Size())
			}
			fmt.Fprintln(w, i%500_000)
		}
		w.Flush()
		in.Close()
	}()
	io.Copy(io.Discard, out)
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	err = cmd.Wait()
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailure || bytes.Count(stderr.Bytes(), []byte("\n")) > 2 ||
		!bytes.Contains(stderr.Bytes(), []byte("was written over while it was read")) {
		t.Errorf("%v: %.500s", err, stderr.Bytes())
	}
}
