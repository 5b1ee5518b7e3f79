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

// part is what package mutant can leave out.
type part struct{ name, what string }

// packages are what has parts that can be left out, with the tests that are to notice.
var packages = []struct {
	name, tests string
	parts       []part
}{
	{"bplus", "Beside|Read|Write|Snapshot|Merge", []part{
		{"version", "the look at a leaf's word after it was read"},
		{"cursor's version", "the same between two steps of a cursor"},
		{"high key", "to follow the side link where a key is above its leaf"},
		{"generation", "the look whether memory was used again"},
		{"epoch", "the look at the epoch in Commit"},
		{"preserve", "to keep a leaf's state for a snapshot"},
		{"kept lines", "the look whether a line is kept before it is changed"},
		{"kept lines' version", "the look at a leaf's word after its lines were put together with kept ones"},
		{"dead", "the look whether a leaf is dead"},
		{"lock", "to lock a leaf before its lines are stored"},
		{"word last", "to store a leaf's word after its lines"},
		{"parent first", "to tell the parent before a leaf's entries are taken over"},
		{"seal", "to seal a leaf whose entries are taken over"},
		{"neighbour", "the look whether two leaves are still next to each other"},
		{"sealed leaf read again", "to use what a cursor has read of a sealed leaf once only"},
		{"counted leaf is in the tree", "the look whether a leaf that is counted is part of the tree"},
	}},
	{"radix", "Beside|Update", []part{
		{"radix: version", "the look at a node's word after a link was read"},
		{"radix: cursor's version", "the same before a cursor returns an entry"},
		{"radix: writer's version", "the same on a writer's way"},
		{"radix: generation", "the look whether memory was used again"},
		{"radix: writers have begun", "to end a generation only when all writers have begun in it"},
		{"radix: changed since", "the look whether a node is what it was when it is locked"},
		{"radix: node exchanged is locked", "to lock a node that is exchanged, and not the one above it alone"},
		{"radix: value under lock", "to lock the node above a leaf whose value is set"},
		{"radix: dead", "to say that a node is no longer part of the tree"},
		{"radix: thaw", "to copy what a snapshot has before it is changed"},
		{"radix: mark", "to mark what is above a change as not counted"},
		{"radix: shortcut out first", "to take a shortcut out before the store that makes it wrong"},
		{"radix: shortcut put in under lock", "to put a shortcut in while the node above is locked"},
	}},
	{"index", "Update", []part{
		{"index: box read", "to doubt what an update was told only where it has read a box"},
	}},
}

func TestMutants(t *testing.T) {
	for _, p := range packages {
		t.Run(p.name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), p.name+".test")
			build := exec.Command("go", "test", "-c", "-tags", "stalls,mutants", "-o", binary, "github.com/pando-index/pando/internal/"+p.name)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if out, failed := try(t, binary, p.tests, ""); failed {
				t.Fatalf("tests fail with all parts there:\n%s", out)
			}
			for _, part := range p.parts {
				out, failed := try(t, binary, p.tests, part.name)
				if !failed {
					t.Errorf("without %s no test fails", part.what)
					continue
				}
				t.Logf("%-34s %s", part.name, culprits(out))
			}
		})
	}
}

// try runs the tests of the protocol without a part.
func try(t *testing.T, binary, tests, part string) (out string, failed bool) {
	t.Helper()
	run := exec.Command(binary, "-test.short", "-test.timeout=15s", "-test.run", tests)
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
