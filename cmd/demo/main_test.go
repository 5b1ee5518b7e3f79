package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for want, args := range map[string][]string{
		"All answers were compared and are equal.": {"-n", "2000"},
		"All entries were compared":                {"-n", "2K", "-tree", "-seed", "7"},
		`"binary_search_ns"`:                       {"-n", "2000", "-json"},
		`"tree_ns"`:                                {"--n=2000", "--tree", "--json"},
		"-seed":                                    {"-help"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("demo %v: exit code %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
		if strings.HasPrefix(want, `"`) && !json.Valid(out.Bytes()) {
			t.Errorf("demo %v: %q is no JSON", args, out.String())
		}
	}
}

func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"-n 5 is too few to time":  {"-n", "5"},
		`"x" is no number`:         {"-n", "x"},
		`takes no argument "more"`: {"more"},
		"-fast":                    {"-fast"},
		"-seed":                    {"-seed", "-1"},
	} {
		var out, errs bytes.Buffer
		code := run(args, &out, &errs)
		if code != exitUsage || out.Len() > 0 || !strings.Contains(errs.String(), want) || !strings.HasSuffix(errs.String(), "\nTry `demo -help`.\n") {
			t.Errorf("demo %v: exit code %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
}

// full is a place that nothing can be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Output that is lost is a failure.
func TestFull(t *testing.T) {
	for _, args := range [][]string{{"-n", "1000"}, {"-n", "1000", "-json"}, {"-help"}} {
		var errs bytes.Buffer
		if code := run(args, full{}, &errs); code != exitFailure || !strings.Contains(errs.String(), "demo: cannot write the output: no space left") {
			t.Errorf("demo %v: exit code %d, stderr %q", args, code, errs.String())
		}
	}
}

// The first command of the README compiles the library, and what links a GPU's driver
// without cgo; the tables of the command pando would take minutes.
func TestCompilesQuickly(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no Go here to ask: ", err)
	}
	modules, err := exec.Command(tool, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"github.com/pando-index/pando", "github.com/ebitengine/purego", "golang.org/x/sys"}
	for m := range strings.FieldsSeq(string(modules)) {
		if !slices.Contains(allowed, m) {
			t.Errorf("the demonstration needs %s", m)
		}
	}
}
