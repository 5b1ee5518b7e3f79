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

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
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

// A program that is killed while it makes a store leaves a log without the checkpoint that
// names the columns. The next one to make it goes on as if nothing were there.
func TestStoreHalfMade(t *testing.T) {
	types, note, err := entryTypes([]table.Field{{Name: "key", Type: table.String}, {Name: "a", Type: table.Int64}, {Name: "b", Type: table.String}})
	if err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte("key,a,b\nx,5,y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string][]string{"init": {"-t", "key=string", "-t", "a=int64", "-t", "b=string"}, "import": {rows, "-k", "key", "-v", "a", "-v", "b"}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s, err := typed.NewStore(dir, types, pandostore.Note(note))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			pando := func(args ...string) string {
				var out, errs bytes.Buffer
				if code := run(append([]string{"store"}, args...), &out, &errs); code != exitOK {
					t.Fatalf("%v: %d, %s", args, code, errs.String())
				}
				return out.String()
			}
			pando(append([]string{name, dir}, again...)...)
			pando("import", dir, rows, "-k", "key", "-v", "a", "-v", "b")
			if got := pando("range", dir, "-f", "csv"); got != "key,a,b\nx,5,y\n" {
				t.Errorf("%s", got)
			}
			if code := run([]string{"store", "init", dir, "-t", "key=string"}, io.Discard, io.Discard); code != exitFailure {
				t.Errorf("init where a store is: %d", code)
			}
		})
	}
}
