package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// names lists a directory.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func content(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func nothing() {}

// Wherever it goes wrong, the old file stays and nothing else does.
func TestReplaceIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Replace(path, content("old"), nothing); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Replace(path, func(w io.Writer) error { return errors.Join(content("half")(w), broken) }, nothing)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	func() {
		defer func() {
			if p := recover(); p != "closed" {
				t.Errorf("recovered %v", p)
			}
		}()
		Replace(path, content("new"), func() { panic("closed") })
	}()
	if data, err := os.ReadFile(path); string(data) != "old" || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v; %q", data, err, names(t, dir))
	}
	ready := func() {
		if data, err := os.ReadFile(path); string(data) != "old" {
			t.Errorf("before it is ready: %q, %v", data, err)
		}
	}
	if err := Replace(path, content("new"), ready); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); string(data) != "new" || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v; %q", data, err, names(t, dir))
	}
}

// What a dead process has left is removed, what a living one is writing is
// not, and neither is a file of another name.
func TestStaleFilesAreRemoved(t *testing.T) {
	if !renamesOpen {
		t.Skip("no locks on this system")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%016x.tmp", prefix(path), i)), []byte("stale"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, prefix("another")+"0.tmp")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Replace(path, func(w io.Writer) error {
		if err := Replace(path, content("inner"), nothing); err != nil {
			return err
		}
		return content("outer")(w)
	}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); string(data) != "outer" {
		t.Errorf("%q, %v", data, err)
	}
	if got := names(t, dir); len(got) != 2 || got[1] != "file" {
		t.Errorf("left: %q", got)
	}
}

// A new file has the mode that any new file of this process has.
func TestModeOfNewFile(t *testing.T) {
	dir := t.TempDir()
	plain, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	path := filepath.Join(dir, "file")
	if err := Replace(path, content(""), nothing); err != nil {
		t.Fatal(err)
	}
	a, _ := plain.Stat()
	b, err := os.Stat(path)
	if err != nil || a.Mode() != b.Mode() {
		t.Errorf("%v, want %v; %v", b.Mode(), a.Mode(), err)
	}
}

// What replaces a file has its mode, from the beginning: nobody else may read a
// private file while it is written.
func TestModeOfReplacedFile(t *testing.T) {
	if !renamesOpen {
		t.Skip("other systems have other modes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, mode := range []os.FileMode{0o600, 0o640, 0o444, 0o666} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		modes := func(when string) {
			for _, name := range names(t, dir) {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
					t.Errorf("%s, %s: %v, want %v; %v", when, name, info.Mode(), mode, err)
				}
			}
		}
		err := Replace(path, func(w io.Writer) error { modes("while it is written"); return content("new")(w) }, nothing)
		if err != nil {
			t.Fatal(err)
		}
		modes("afterwards")
		os.Remove(path)
	}
}

// A link that leads nowhere stays, and the file that it names is made, by way of
// other links too.
func TestReplaceThroughDanglingLink(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o777); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"a": filepath.Join("sub", "b"), filepath.Join("sub", "b"): filepath.Join("..", "sub", "file")}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	for _, text := range []string{"first", "second"} {
		if err := Replace(filepath.Join(dir, "a"), content(text), nothing); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(sub, "file")); string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
	for name, to := range links {
		if got, err := os.Readlink(filepath.Join(dir, name)); got != to {
			t.Errorf("%s points to %q, %v", name, got, err)
		}
	}
	// Below a folder that is a link, ".." leads out of the folder itself.
	if err := os.MkdirAll(filepath.Join(dir, "releases", "v1", "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"current": filepath.Join("releases", "v1", "data"), filepath.Join("releases", "v1", "data", "c"): filepath.Join("..", "file"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(filepath.Join(dir, "current", "c"), content("third"), nothing); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "releases", "v1", "file")); string(data) != "third" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "loop"), content("new"), nothing); err == nil {
		t.Error("a link to itself is replaced")
	}
	if err := os.Symlink(filepath.Join("none", "file"), filepath.Join(dir, "far")); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "far"), content("new"), nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link into a folder that is not there: %v", err)
	}
}
