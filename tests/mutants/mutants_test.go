//go:build mutants

package mutants

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parts are what package mutant can leave out.
var parts = []struct{ name, what string }{
	{"version", "the look at a leaf's word after it was read"},
	{"cursor's version", "the same between two steps of a cursor"},
	{"high key", "to follow the side link where a key is above its leaf"},
	{"generation", "the look whether memory was used again"},
	{"epoch", "the look at the epoch in Commit"},
	{"preserve", "to keep a leaf's state for a snapshot"},
	{"dead", "the look whether a leaf is dead"},
	{"lock", "to lock a leaf before its lines are stored"},
	{"word last", "to store a leaf's word after its lines"},
	{"parent first", "to tell the parent before a leaf's entries are taken over"},
	{"seal", "to seal a leaf whose entries are taken over"},
	{"neighbour", "the look whether two leaves are still next to each other"},
	{"sealed leaf read again", "to use what a cursor has read of a sealed leaf once only"},
	{"counted leaf is in the tree", "the look whether a leaf that is counted is part of the tree"},
}

func TestMutants(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bplus.test")
	build := exec.Command("go", "test", "-c", "-tags", "stalls,mutants", "-o", binary, "github.com/pando-index/pando/internal/bplus")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, failed := try(t, binary, ""); failed {
		t.Fatalf("tests fail with all parts there:\n%s", out)
	}
	for _, p := range parts {
		out, failed := try(t, binary, p.name)
		if !failed {
			t.Errorf("without %s no test fails", p.what)
			continue
		}
		t.Logf("%-28s %s", p.name, culprits(out))
	}
}

// try runs the tests of the protocol without a part.
func try(t *testing.T, binary, part string) (out string, failed bool) {
	t.Helper()
	run := exec.Command(binary, "-test.short", "-test.timeout=15s", "-test.run", "Beside|Read|Write|Snapshot|Merge")
	run.Env = append(os.Environ(), "PANDO_MUTANT="+part)
	run.Dir = t.TempDir()
	all, err := run.CombinedOutput()
	return string(all), err != nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|panic: test timed out|running tests:\n\s+(\w+)`)

// culprits returns the tests that have failed.
func culprits(out string) string {
	var names []string
	for _, m := range failure.FindAllStringSubmatch(out, -1) {
		switch {
		case m[1] != "":
			names = append(names, m[1])
		case m[2] != "":
			names = append(names, m[2]+" (does not end)")
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("%.200s", out)
	}
	return strings.Join(names, ", ")
}
