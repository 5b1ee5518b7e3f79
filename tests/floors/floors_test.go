// Package floors holds imports to the table of floors in ARCHITECTURE.md.
package floors

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/pando-index/pando"

	ofTests = 100 // the floor of what only tests import
)

// row is a line of the table: packages of a floor, and what they may import of it.
type row struct {
	floor            int
	packages, beside []string
}

// TestFloors fails where a package imports from above, or from its own floor what its
// row does not name; and where it is not in the table, or no longer there.
func TestFloors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Skip("the sources are not here: ", err)
	}
	table, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	imports := imported(t)
	for _, p := range check(table, imports) {
		t.Error(p)
	}
	if len(imports) < 30 {
		t.Errorf("only %d packages were found", len(imports))
	}
}

var (
	line   = regexp.MustCompile(`(?m)^\| (\d|tests) \|([^|]*)\|([^|]*)\|[^|]*\|$`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

// parse reads the rows of the table.
func parse(text string) (table []row, err error) {
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		r := row{floor: ofTests}
		if m[1] != "tests" {
			r.floor, _ = strconv.Atoi(m[1])
		}
		if r.packages, err = named(m[2]); err == nil {
			r.beside, err = named(m[3])
		}
		if err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	if len(table) == 0 {
		err = fmt.Errorf("no table of floors was found")
	}
	return table, err
}

// named returns the packages that a cell names, as folders of the repository.
func named(cell string) (out []string, err error) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		name := m[1]
		if _, err := os.Stat(filepath.Join(root, "internal", name)); err == nil && name != "." {
			name = "internal/" + name
		} else if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return nil, fmt.Errorf("the table names %s: %w", name, err)
		}
		out = append(out, name)
	}
	return out, nil
}

// imported returns which packages of ours each package imports, its tests left out. It
// reads the sources by itself: go test would not know that the result depends on what a
// program that is started here reads, and take an old one.
func imported(t *testing.T) map[string][]string {
	out := map[string][]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if n := d.Name(); folder != "." && (n == "testdata" || n == "node_modules" || n[0] == '.' || n[0] == '_' || isModule(folder)) {
			return fs.SkipDir
		}
		p, err := build.ImportDir(filepath.Join(root, folder), 0)
		var none *build.NoGoError
		if errors.As(err, &none) {
			err = nil
			if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
				return nil
			}
		}
		out[folder] = nil
		for _, name := range p.Imports {
			if name := ours(name); name != "" {
				out[folder] = append(out[folder], name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dependsOnSources looks at every folder of the sources, so that go test knows that cached results
// depend on them: it does not see what the go command reads for a test.
func dependsOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ours returns the folder of a package, and "" for one of another module.
func ours(path string) string {
	if path == module {
		return "."
	}
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// check returns what is wrong.
func check(table []row, imports map[string][]string) (problems []string) {
	rows := map[string]row{}
	for _, r := range table {
		for _, p := range r.packages {
			if _, twice := rows[p]; twice {
				problems = append(problems, p+" is in the table twice")
			}
			rows[p] = r
			if _, there := imports[p]; !there && !isModule(p) {
				problems = append(problems, p+" is in the table, and has no Go files")
			}
		}
	}
	for of, list := range imports {
		r, ok := rows[of]
		if !ok {
			problems = append(problems, of+" is not in the table of floors in ARCHITECTURE.md")
			continue
		}
		for _, p := range list {
			if q := rows[p]; r.floor != ofTests && q.floor >= r.floor && !(q.floor == r.floor && slices.Contains(r.beside, p)) {
				problems = append(problems, fmt.Sprintf("%s (floor %d) imports %s (floor %d), which its row does not name", of, r.floor, p, q.floor))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// isModule reports whether a folder is a module of its own, which go list does not name.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(root, folder, "go.mod"))
	return err == nil
}

// What the table does not allow is found.
func TestCheck(t *testing.T) {
	table := []row{
		{3, []string{"a"}, []string{"b"}},
		{3, []string{"b", "c"}, nil},
		{1, []string{"d"}, nil},
		{ofTests, []string{"e"}, nil},
	}
	good := map[string][]string{"a": {"b", "d"}, "b": {"d"}, "c": nil, "d": nil, "e": {"a"}}
	if p := check(table, good); len(p) > 0 {
		t.Error(p)
	}
	for of, p := range map[string]string{"a": "c", "b": "a", "d": "b", "c": "e", "f": "d"} {
		bad := map[string][]string{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil}
		bad[of] = []string{p}
		if p := check(table, bad); len(p) != 1 {
			t.Errorf("%s imports %s: %q", of, p, p)
		}
	}
	if p := check(append(table, row{1, []string{"a"}, nil}), good); len(p) == 0 {
		t.Error("nobody minds a package that is in the table twice")
	}
	if p := check(append(table, row{1, []string{"g"}, nil}), good); len(p) != 1 {
		t.Error("nobody minds a package that is gone")
	}
}
