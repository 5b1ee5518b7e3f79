package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// part is a package of the benchmark: its floor and what it may import of
// Pando's internal packages.
type part struct {
	floor  int
	inside []string
	asked  map[string]bool // of these by the row's packages
}

var (
	partRow  = regexp.MustCompile(`(?m)^\| (\d) \|([^|]*)\|([^|]*)\|[^|]*\|$`)
	inQuotes = regexp.MustCompile("`([^`]+)`")
)

// The table of README.md has every package, each imports from floors below its
// own alone, and the internal packages that its row names are those that the
// row's packages import.
func TestPartsImportWhatTheirRowsSay(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Skip("no sources here")
	}
	parts := map[string]*part{}
	for _, m := range partRow.FindAllStringSubmatch(string(text), -1) {
		floor, _ := strconv.Atoi(m[1])
		p := &part{floor: floor, inside: quotedIn(m[3]), asked: map[string]bool{}}
		for _, name := range quotedIn(m[2]) {
			parts[name] = p
		}
	}
	imports := importedBy(t)
	for name := range parts {
		if imports[name] == nil {
			t.Errorf("README.md has a part %s, which is not there", name)
		}
	}
	for name, paths := range imports {
		p := parts[name]
		if p == nil {
			t.Errorf("README.md does not say what %s is", name)
			continue
		}
		for path := range paths {
			if at, ok := strings.CutPrefix(path, "github.com/pando-index/pando/bench/"); ok {
				if to := parts[at]; to != nil && to.floor >= p.floor {
					t.Errorf("%s, on floor %d, imports %s, on floor %d", name, p.floor, at, to.floor)
				}
			} else if at, ok := strings.CutPrefix(path, "github.com/pando-index/pando/internal/"); ok {
				if p.asked[at] = true; !slices.Contains(p.inside, at) {
					t.Errorf("%s imports internal/%s, which its row does not name", name, at)
				}
			}
		}
	}
	for name, p := range parts {
		for _, at := range p.inside {
			if !p.asked[at] {
				t.Errorf("%s does not import internal/%s, which its row names", name, at)
			}
		}
	}
}

func quotedIn(cell string) (out []string) {
	for _, m := range inQuotes.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// importedBy returns what the packages of the benchmark import outside of tests, by
// their folders.
func importedBy(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if _, own := os.Stat(filepath.Join(path, "go.mod")); err == nil && d.IsDir() && path != "." && own == nil {
			return filepath.SkipDir // a module of its own
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if out[dir] == nil {
			out[dir] = map[string]bool{}
		}
		for _, im := range f.Imports {
			out[dir][strings.Trim(im.Path.Value, `"`)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
