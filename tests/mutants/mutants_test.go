//go:build mutants

package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/simd"
)

// part is what package mutant can leave out.
type part struct{ name, what string }

// packages are what has parts that can be left out, with the tests that are to notice those that
// have none of their own in the table of soonest.
var packages = []struct {
	name, tests string
	parts       []part
}{
	{"internal/epoch", "", []part{
		{"generation", "the look whether memory was used again"},
		{"closed generation", "to take no generation of a closed tree for the present one"},
		{"epoch: two generations", "to let two generations pass before memory is used again"},
		{"epoch: newest snapshot", "to keep a value that the newest snapshot has"},
		{"epoch: older snapshot", "to hand a reference to an older snapshot that has it"},
		{"epoch: held", "to let a generation go on while a reader holds the one before"},
	}},
	{"internal/bplus", "Beside|Read|Write|Snapshot|Merge", []part{
		{"version", "the look at a leaf's word after it was read"},
		{"cursor's version", "the same between two steps of a cursor"},
		{"few's version", "the same when the beginning of a range was read"},
		{"high key", "to follow the side link where a key is above its leaf"},
		{"generation", "the look whether memory was used again"},
		{"closed generation", "to take no generation of a closed tree for the present one"},
		{"epoch", "the look at the epoch in Commit"},
		{"preserve", "to keep a leaf's state for a snapshot"},
		{"kept lines", "the look whether a line is kept before it is changed"},
		{"kept lines' version", "the look at a leaf's word after its lines were put together with kept ones"},
		{"older snapshot's states", "to take over the states of a leaf from snapshots that are being closed before more of it is kept"},
		{"oldest states first", "to hand over the states of older snapshots first where several are being closed"},
		{"dead", "the look whether a leaf is dead"},
		{"lock", "to lock a leaf before its lines are stored"},
		{"word last", "to store a leaf's word after its lines"},
		{"parent first", "to tell the parent before a leaf's entries are taken over"},
		{"seal", "to seal a leaf whose entries are taken over"},
		{"neighbour", "the look whether two leaves are still next to each other"},
		{"sealed leaf read again", "to use what a cursor has read of a sealed leaf once only"},
		{"batch: leaf's keys", "the look whether operations belong to the leaf that is written anew"},
		{"batch: state kept", "to keep the state of a leaf that a batch writes anew"},
		{"batch: leaf noted", "to note that the entries of such a leaf are to be counted"},
		{"batch: the rest told", "to tell parents of all new leaves before a batch ends"},
		{"counted leaf is in the tree", "the look whether a leaf that is counted is part of the tree"},
	}},
	{"internal/radix", "Beside|Update", []part{
		{"radix: version", "the look at a node's word after a link was read"},
		{"radix: cursor's version", "the same before a cursor returns an entry"},
		{"radix: writer's version", "the same on a writer's way"},
		{"generation", "the look whether memory was used again"},
		{"radix: writers have begun", "to end a generation only when all writers have begun in it"},
		{"radix: changed since", "the look whether a node is what it was when it is locked"},
		{"radix: node exchanged is locked", "to lock a node that is exchanged, and not the one above it alone"},
		{"radix: value under lock", "to lock the node above a leaf whose value is set"},
		{"radix: dead", "to say that a node is no longer part of the tree"},
		{"radix: thaw", "to copy what a snapshot has before it is changed"},
		{"radix: mark", "to mark what is above a change as not counted"},
		{"radix: mark first", "to do so before the change is seen"},
		{"radix: shortcut out first", "to take a shortcut out before the store that makes it wrong"},
		{"radix: shortcut put in under lock", "to put a shortcut in while the node above is locked"},
		{"radix: walk by depth", "to go on with tops that have come while shortcuts are made"},
		{"radix: pop's shortcut", "to take the shortcut to an entry out before it is decided that it is the first"},
		{"radix: pop's way", "the look whether an entry is still the first when it is locked"},
	}},
	{"internal/blob", "Beside|Stalled|Limits", []part{
		{"generation", "the look whether memory was used again, after a value was copied"},
		{"blob: bit first", "to say that a slot is free before it is counted as such"},
		{"blob: slab is still ours", "the look whose a slab is, under the lock of its class"},
		{"blob: tags first", "to change the tags of slots before the epoch that they begin at"},
		{"blob: close waits", "to wait in Close for values that are being copied"},
		{"blob: refund", "to take back what counts against a limit when a value was not put"},
		{"blob: plausible", "the look whether a word claims to be longer than any value is"},
		{"blob: stashes out", "to take free slots of slabs that are emptied from those who have them at hand"},
		{"blob: unlisted while emptied", "to take a slab that is emptied off the list of those with free slots"},
	}},
	{"internal/live", "Update|Stored", []part{
		{"generation", "the look whether memory was used again, after a value was copied"},
		{"epoch: two generations", "to let two generations pass before a value's memory is used again"},
		{"live: generation after the copy", "to look at the generation after the bytes of a value were copied, and not before alone"},
		{"live: moved by compare-and-swap", "to put the place of a moved value into the tree only where it has the old one"},
		{"live: box read", "to doubt what an update was told only where it has read a box"},
		{"live: close waits", "to wait in Close for values that changes have taken out and return"},
		{"live: value told", "to ask an update's function again where its key has changed"},
		{"live: still in its generation", "to look at a value again where its word may have been used again"},
	}},
	{"pandostore", "CrashA|Memory|Histories|Faults|LongRange", []part{
		{"store: folder", "to sync the folder before what it names is relied on"},
		{"store: file before name", "to sync a segment before it gets its name"},
		{"store: commit frame", "to do parts of a batch only where there is a commit"},
		{"store: acknowledged early", "to sync a group before it is acknowledged"},
		{"store: checkpoint synced", "to sync a checkpoint before it gets its name"},
		{"store: deleted early", "to remove segments only when the checkpoint is durable"},
		{"store: segment synced", "to sync a segment before the next is used"},
		{"store: failure is final", "to refuse all changes after a write or a sync has failed"},
		{"store: written again", "to write again what may be in the system's memory alone"},
		{"store: torn end cleared", "to clear what is behind the last whole frame"},
		{"store: range in one frame", "to log both ends of a range in one frame"},
		{"store: refused", "to log what the tree has refused"},
		{"store: evaluated behind all", "to ask an update's function when all before is in the tree"},
		{"store: synced by itself", "to sync the log now and then, where nobody asks for it"},
		{"store: order of groups", "to put groups into the tree in their order"},
	}},
	{"pandostore/internal/log", "Moved|Torn", []part{
		{"store: seed", "to seed checksums with the place of a frame"},
		{"store: damage before the end", "the look whether a frame that is not whole was durable"},
	}},
	{"internal/password", "", []part{
		{"password: compared", "the look whether a password is the right one"},
	}},
	{"pandoserver/pandohttp", "Bod|Connections", []part{
		{"http: body bound", "to bound a body when it is unpacked, too"},
		{"http: bodies that are kept", "to count a body that is in memory as a whole"},
		{"http: connections of a host", "to let one in where a host has most of the connections"},
	}},
	{"pandoserver", "EachOther|Batches|Scan|OfUsers|Passwords|ToOthers|Strangers|Handshakes|RepliesOf|Together|Logins", []part{
		{"password: compared", "the look whether a password is the right one"},
		{"server: both ends of a range", "the look whether the upper end of a range is the user's, too"},
		{"server: loopback", "the look whether other machines can reach an address, and who is let in"},
		{"server: a record at a time", "to read no more than a record of TLS while its client is unknown"},
		{"server: long handshakes", "to end a handshake that has too many bytes"},
		{"server: long messages of TLS", "to read no long messages of TLS itself behind a handshake"},
		{"server: logins are bounded", "to refuse logins where very many passwords wait to be looked at"},
		{"server: replies of a transaction", "to end a transaction whose replies are too long"},
		{"server: commands together", "to do commands of one read in parts where they are very many"},
		{"server: transaction alone", "to keep other changes away from a transaction"},
		{"server: changes are shared", "to keep transactions away from a change"},
		{"server: several keys together", "to keep commands apart that change the same several keys"},
		{"server: one batch", "to make the changes of a transaction one batch"},
		{"server: keys of one code together", "to stop a scan between keys of different codes only"},
		{"server: what all keys share", "to leave out of a cursor what all keys begin with, and no more"},
	}},
}

// TestMutants tries parts beside each other: a package's tests are compiled once, and run once for
// each part.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, p := range packages {
		t.Run(strings.TrimPrefix(p.name, "internal/"), func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), filepath.Base(p.name)+".test")
			command(t, "go", "test", "-c", "-o", binary, "-tags", "stalls,mutants", module+p.name)
			named := soonest[p.name]
			all := whole(t, binary, p.tests, named, p.parts)
			for _, part := range p.parts {
				t.Run(part.name, func(t *testing.T) {
					t.Parallel()
					judge(t, all[named[part.name]], binary, part, "PANDO_MUTANT="+part.name)
				})
			}
		})
	}
}

// assembly is what simd.PutRegular can leave out.
var assembly = []part{
	{"busy", "the look whether a leaf is locked, sealed or dead"},
	{"high key", "the look whether a key is above its leaf"},
	{"leaf's epoch", "the look whether a snapshot has the leaf"},
	{"lock", "to lock a leaf before its lines are stored"},
	{"epoch", "the look at the epoch once a leaf is locked"},
	{"generation", "the look whether memory was used again"},
	{"word last", "to store a leaf's word after its lines"},
	{"sequence", "the next sequence number when a pair was put"},
	{"value's sequence", "the same when a value was exchanged"},
	{"word of what stays", "the look at a leaf's word where the value is the same"},
	{"room twice", "to give up where a line has no room and then has"},
	{"full lines", "to note that a line is full"},
	{"index line", "to set what the index line has of a separator"},
	{"list", "to note that a leaf is to be counted"},
}

// TestAssembly does the same with what is written in assembly: it is generated once
// more for each part.
func TestAssembly(t *testing.T) {
	if len(simd.Paths()) == 1 {
		t.Skip("this processor does not run it")
	}
	t.Parallel()
	generator := filepath.Join(t.TempDir(), "generator")
	command(t, "go", "build", "-C", simdDir+"/_gen", "-o", generator, ".")
	flag := generate(t, generator, "")
	o := compile(t, flag, "internal/bplus")
	named := soonest["assembly"]
	all := whole(t, link(t, o, flag), "Quick|Beside|Read|Write|Snapshot|Merge", named, assembly)
	t.Run("linearizable", func(t *testing.T) {
		t.Parallel()
		binary := filepath.Join(t.TempDir(), "linearizable.test")
		command(t, "go", "test", "-c", "-o", binary, flag, module+"tests/linearizable")
		if out, failed := try(t, 5*time.Minute, binary, "."); failed {
			t.Errorf("tests fail with all parts there:\n%s", out)
		}
	})
	for _, part := range assembly {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			judge(t, all[named[part.name]], link(t, o, generate(t, generator, part.name)), part)
		})
	}
}

const (
	module  = "github.com/pando-index/pando/"
	simdDir = "../../internal/simd"
)

// generate generates assembly that holds goroutines up, without a part, or with all of them if
// part is empty. It returns the flag that has it compiled in the place of what is there.
func generate(t *testing.T, generator, part string) string {
	t.Helper()
	dir, err := filepath.Abs(simdDir)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	to := t.TempDir()
	for _, isa := range []string{"avx2", "avx512"} {
		name := "regular_" + isa + "_amd64.s"
		overlay.Replace[filepath.Join(dir, name)] = filepath.Join(to, name)
		command(t, generator, "-part", "regular", "-isa", isa, "-stalls", "-without", part, "-out", filepath.Join(to, name), "-pkg", "simd")
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(to, "overlay.json")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + file
}

// objects is what the tests of a package are linked from.
type objects struct {
	main  string            // the file of their package main
	files map[string]string // by import path
}

// compile compiles the tests of a package and all that they import.
func compile(t *testing.T, flag, name string) (o objects) {
	t.Helper()
	o.files = map[string]string{}
	path, plain := module+name, map[string]string{}
	for l := range strings.Lines(command(t, "go", "list", "-export", flag, "-deps", "-test", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}", path)) {
		of, file, ok := strings.Cut(strings.TrimSpace(l), "=")
		if !ok {
			continue
		}
		if of == path+".test" {
			o.main = file
		} else if of, forTests := strings.CutSuffix(of, " ["+path+".test]"); forTests {
			o.files[of] = file
		} else {
			plain[of] = file
		}
	}
	for of, file := range plain {
		if _, ok := o.files[of]; !ok {
			o.files[of] = file
		}
	}
	return o
}

// link links tests with package simd as a flag has it compiled. What imports the package is not compiled
// again, since its Go code is the same: that takes a tenth of the time.
func link(t *testing.T, o objects, flag string) (binary string) {
	t.Helper()
	var config strings.Builder
	for of, file := range o.files {
		if of == module+"internal/simd" {
			file = strings.TrimSpace(command(t, "go", "list", "-export", flag, "-f", "{{.Export}}", of))
		}
		fmt.Fprintf(&config, "packagefile %s=%s\n", of, file)
	}
	dir := t.TempDir()
	file, binary := filepath.Join(dir, "importcfg"), filepath.Join(dir, "program.test")
	if err := os.WriteFile(file, []byte(config.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	command(t, "go", "tool", "link", "-importcfg", file, "-o", binary, o.main)
	return binary
}

// command runs a command and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	run := exec.Command(name, args...)
	var errs strings.Builder
	run.Stderr = &errs
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// asked is a pattern of tests, and how long to wait for them where a part is left out.
type asked struct {
	pattern string
	limit   time.Duration
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([\d.]+)s\)`)

// whole demands that tests pass with all parts there: those that are named, and those of a pattern if
// some part has none. It returns what to run where a part is not, by the names of tests, and by "" for
// those of the pattern.
func whole(t *testing.T, binary, tests string, named map[string]string, parts []part) map[string]asked {
	t.Helper()
	var patterns []string
	left := maps.Clone(named)
	for _, p := range parts {
		if test := named[p.name]; test != "" {
			patterns = append(patterns, "^"+test+"$")
			delete(left, p.name)
		} else {
			patterns = append(patterns, tests)
		}
	}
	for name := range left {
		t.Errorf("%s is in the table of tests, and no part", name)
	}
	begin := time.Now()
	out, failed := try(t, 5*time.Minute, binary, strings.Join(patterns, "|"))
	if failed {
		t.Fatalf("tests fail with all parts there:\n%s", out)
	}
	l := map[string]asked{"": {tests, max(15*time.Second, 3*time.Since(begin))}}
	for _, m := range passed.FindAllStringSubmatch(out, -1) {
		takes, err := time.ParseDuration(m[2] + "s")
		if err != nil {
			t.Fatal(err)
		}
		l[m[1]] = asked{"^" + m[1] + "$", max(15*time.Second, 3*takes)}
	}
	for name, test := range named {
		if _, ok := l[test]; !ok {
			t.Errorf("%s: there is no test %s", name, test)
		}
	}
	return l
}

// tries is how often a test is run that does not fail, since most of them wait for chance.
const tries = 10

// judge demands that a test fails without a part.
func judge(t *testing.T, a asked, binary string, p part, env ...string) {
	t.Helper()
	begin := time.Now()
	for range tries {
		if out, failed := try(t, a.limit, binary, a.pattern, env...); failed {
			t.Logf("%s, %.1f s", culprits(out), time.Since(begin).Seconds())
			return
		}
	}
	t.Errorf("without %s %s does not fail", p.what, a.pattern)
}

// try runs tests by a pattern of their names, as much of them as in a long run, until one fails.
func try(t *testing.T, limit time.Duration, binary, tests string, env ...string) (out string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit+30*time.Second) // in assembly the tests' own limit may not be seen
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.timeout="+limit.String(), "-test.run", tests)
	run.Env = append(append(os.Environ(), "PANDO_LONG=1"), env...)
	run.Dir = t.TempDir()
	all, err := run.CombinedOutput()
	if ctx.Err() != nil {
		all = append(all, "\ndoes not end, in assembly"...)
	}
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
