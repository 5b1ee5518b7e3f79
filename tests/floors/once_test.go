package floors

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCompiledOnce fails where a package has test files of its own name, and its other tests import
// packages of ours that import it. All of these are compiled once more for that test binary,
// since the package with its test files is another one. Either kind of test can move to a folder
// of its own, or to the package whose name ends in _test.
func TestCompiledOnce(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	dependsOnSources(t)
	cmd := exec.Command("go", "list", "-deps", "-test", "-f", "{{.ImportPath}}", "./...")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(packages) < 100 {
		t.Errorf("only %d packages were found", len(packages))
	}
	for _, problem := range again(packages) {
		t.Error(problem)
	}
}

// forTests is a package that is compiled for a test binary, as go list names it.
var forTests = regexp.MustCompile(`^(\S+) \[(\S+)\.test\]$`)

// again returns what is compiled once more for the tests of another package.
func again(packages []string) (problems []string) {
	for _, p := range packages {
		m := forTests.FindStringSubmatch(p)
		if m == nil || m[1] == m[2] || m[1] == m[2]+"_test" {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s is compiled once more for the tests of %s", ours(m[1]), ours(m[2])))
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// What is compiled twice is found, and a package with its own tests is not taken for it.
func TestAgain(t *testing.T) {
	packages := []string{
		module + "/a", module + "/a [" + module + "/a.test]", module + "/a_test [" + module + "/a.test]", module + "/a.test",
		module + "/b", "fmt",
	}
	if p := again(packages); len(p) > 0 {
		t.Error(p)
	}
	p := again(append(packages, module+"/b ["+module+"/a.test]"))
	if len(p) != 1 || p[0] != "b is compiled once more for the tests of a" {
		t.Error(p)
	}
}
