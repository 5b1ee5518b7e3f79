package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pando-index/pando/pandostore"
)

// While another has a store, it is not changed, and only its newest checkpoint is read.
func TestStoreInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := pandostore.Open[int64, string](dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pando := func(args ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = run(append([]string{"store"}, args...), &o, &e)
		return code, o.String(), e.String()
	}
	if code, _, errs := pando("get", dir, "1", "--checkpoint"); code != exitFailure || !strings.Contains(errs, "no checkpoint yet") {
		t.Errorf("before the first checkpoint: %d, %s", code, errs)
	}
	if err := s.Set(1, "one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(2, "two"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", dir, "1"}, {"set", dir, "1", "x"}, {"delete", dir, "1"}, {"verify", dir}, {"checkpoint", dir}, {"export", dir}} {
		if code, out, errs := pando(args...); code != exitFailure || out != "" || !strings.Contains(errs, "in use by process") || !strings.Contains(errs, "--checkpoint") {
			t.Errorf("%v: %d, %s%s", args, code, out, errs)
		}
	}
	if code, out, errs := pando("export", dir, "--checkpoint"); code != exitOK || out != "1\tone\n" {
		t.Errorf("the checkpoint: %d, %s%s", code, out, errs)
	}
	if code, out, errs := pando("info", dir); code != exitOK || !strings.Contains(out, "pandostore.Open[int64, string]") {
		t.Errorf("info: %d, %s%s", code, out, errs)
	}
}

// An import that is interrupted says how far it came, and that much is in the store.
func TestStoreImportInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts to send")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	if code := run([]string{"store", "init", dir, "-t", "key=int64"}, io.Discard, os.Stderr); code != exitOK {
		t.Fatal(code)
	}
	cmd := exec.Command(self, "store", "import", dir, "-", "--format", "csv", "--key", "k")
	cmd.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rows := []byte("k\n" + strings.Repeat("1\n2\n3\n", 1<<20))
	if _, err := in.Write(rows); err != nil { // more than fits on the way, so that some were set
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	in.Close()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("%d (%v): %s", code, err, errs.String())
	}
	if !strings.Contains(errs.String(), "interrupted; the first ") || !strings.Contains(errs.String(), " rows are in "+dir) {
		t.Errorf("it said: %s", errs.String())
	}
	var out bytes.Buffer
	if code := run([]string{"store", "range", dir}, &out, os.Stderr); code != exitOK || out.String() != "1\n2\n3\n" {
		t.Errorf("%d: %s", code, out.String())
	}
}
