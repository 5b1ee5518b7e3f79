package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoteFits tests that an index is built whatever its column of values is called, and
// that the name is kept where a note has room for it and can say it.
func TestNoteFits(t *testing.T) {
	folder := t.TempDir()
	from, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	for name, want := range map[string]string{
		"price":                     "price",
		"<b>&":                      "<b>&",
		strings.Repeat("é", 100):    strings.Repeat("é", 100),
		strings.Repeat("<", 150):    strings.Repeat("<", 150),
		strings.Repeat("<", 250):    "value",
		strings.Repeat("n", 300):    "value",
		strings.Repeat("\xff", 250): "value",
		"caf\xe9":                   "value",
	} {
		if err := os.WriteFile(from, []byte("id,"+name+"\n1,2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "build", from, "-o", file, "-k", "id", "-v", name, "-q")
		var out, errs bytes.Buffer
		if code := run([]string{"head", file, "-f", "csv"}, &out, &errs); code != 0 || out.String() != "key,"+want+"\n1,2\n" {
			t.Errorf("%q: %d, %q, %s", name, code, out.String(), errs.String())
		}
	}
}

// TestNoteOfManyColumns tests that columns of values that a file has no room to tell of
// are refused before the table is read.
func TestNoteOfManyColumns(t *testing.T) {
	folder := t.TempDir()
	from, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	a, b := strings.Repeat("a", 600), strings.Repeat("b", 600)
	if err := os.WriteFile(from, []byte("id,"+a+","+b+"\n1,2,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"build", from, "-o", file, "-k", "id", "-v", a, "-v", b}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "take fewer columns of values, or shorter names") {
		t.Errorf("%d: %s", code, errs.String())
	}
}
