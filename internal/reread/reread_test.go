package reread

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What was made of files is made again when they change, and stays where they are wrong; each of that is told once.
func TestFilesThatChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrong := errors.New("wrong")
	load := func() (string, error) {
		text, err := os.ReadFile(path)
		if err == nil && len(text) == 0 {
			err = wrong
		}
		return string(text), err
	}
	if _, err := Open(load, path, ""); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	write("")
	if _, err := Open(load, path, ""); !errors.Is(err, wrong) {
		t.Fatal(err)
	}
	write("one")
	f, err := Open(load, path, "")
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	f.Tell(func(err error) { told = append(told, err) })
	want := func(text string, tells int) {
		t.Helper()
		for range 3 {
			if got, err := f.Now(); got != text || err != nil {
				t.Errorf("%q, %v; want %q", got, err, text)
			}
		}
		if len(told) != tells {
			t.Errorf("%v was told, want %d", told, tells)
		}
	}
	want("one", 0)
	write("second")
	want("second", 1)
	write("")
	want("second", 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("second", 3)
	write("third")
	want("third", 4)
	write("")
	want("third", 5)
	if told[0] != nil || !errors.Is(told[1], wrong) || !errors.Is(told[2], os.ErrNotExist) || told[3] != nil || !errors.Is(told[4], wrong) {
		t.Error(told)
	}
}
