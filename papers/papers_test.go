// Package papers holds the pages of the five papers to what there is.
package papers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced   = regexp.MustCompile("(?s)```.*?```")
	linked   = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	commands = regexp.MustCompile(`(?m)^go run \. run ([^#\n]+)`)
	packages = regexp.MustCompile(` \./([a-z]+/[a-z/]+)`)
	named    = regexp.MustCompile(`(?m)^\s*Name:\s+"([a-z0-9-]+)",`)
)

// pages returns the page of each paper, and the index.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("the sources are not here")
	}
	out := map[string]string{}
	for _, name := range append(names, "README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.ToSlash(name)] = string(text)
	}
	return out
}

// Every link leads to a file or folder, the index to every page, and a page has its
// four parts.
func TestLinks(t *testing.T) {
	all := pages(t)
	if len(all) != 6 {
		t.Errorf("%d pages, want five and the index", len(all))
	}
	for name, text := range all {
		links := 0
		for _, m := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if links < 5 {
			t.Errorf("%s has only %d links", name, links)
		}
		if name == "README.md" {
			continue
		}
		if !strings.Contains(all["README.md"], "]("+name+")") {
			t.Errorf("the index does not lead to %s", name)
		}
		for _, part := range []string{"What the paper describes", "Where it lives", "What we found", "Run it again"} {
			if strings.Count(text, "\n## "+part+"\n") != 1 {
				t.Errorf("%s: %q is not there once", name, part)
			}
		}
	}
}

// Every experiment that a page says to run is one of the benchmark, which is another
// module, so that its list is read from its text; and every package that is to be
// tested is there.
func TestCommands(t *testing.T) {
	all := pages(t)
	known := map[string]bool{}
	files, err := filepath.Glob("../bench/exp/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no experiments: ", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	if len(known) < 60 {
		t.Errorf("only %d experiments were found", len(known))
	}
	for name, text := range all {
		runs := 0
		for _, m := range commands.FindAllStringSubmatch(text, -1) {
			for _, word := range strings.Fields(m[1]) {
				if strings.HasPrefix(word, "--") {
					break // flags and what belongs to them
				}
				if runs++; !known[word] {
					t.Errorf("%s: there is no experiment %s", name, word)
				}
			}
		}
		if runs == 0 && name != "README.md" {
			t.Errorf("%s says how to run nothing", name)
		}
		for _, m := range packages.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
