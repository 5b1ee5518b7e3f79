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
	{"internal/log", "Moved|Torn", []part{
		{"store: seed", "to seed checksums with the place of a frame"},
		{"store: damage before the end", "the look whether a frame that is not whole was durable"},
	}},
	{"pandocluster/internal/raftlog", "Crash$|Missing", []part{
		{"raftlog: vote synced", "to sync a vote before it is answered"},
		{"raftlog: entries synced", "to sync entries before they are acknowledged"},
		{"raftlog: moved synced", "to sync what has moved before its segment is removed"},
		{"raftlog: oldest segment noted", "to say which segments must be there"},
	}},
	{"pandocluster/internal/planner", "Promises|Incremental|Heal", []part{
		{"planner: majority", "the look whether those that are left are a majority"},
		{"planner: racks", "the look where the other replicas are"},
		{"planner: repair first", "to move nothing for balance while a repair waits"},
		{"planner: transfers", "the bound of what a node receives at once"},
		{"planner: ready", "to give a vote only to who has caught up"},
		{"planner: no further than even", "to move nothing that would be moved back"},
		{"planner: ranges of a node", "to look at a node's ranges again when it has changed"},
	}},
	{"pandocluster/internal/ca", "", []part{
		{"ca: cluster", "the look at the id of the cluster"},
		{"ca: authority", "the look at who has signed"},
		{"ca: open key", "to refuse keys that others can read"},
		{"ca: one at a time", "to keep others from making certificates meanwhile"},
		{"ca: retired in use", "the look whether a certificate is of an authority that is to go"},
	}},
	{"pandocluster/internal/link", "", []part{
		{"link: handshake ends", "the time limit of strangers"},
		{"link: quiet", "to give up connections that say nothing"},
		{"link: right node", "the look whether it is the node that was called"},
		{"link: bounds", "the bounds of what a node sends"},
		{"link: removed", "the look whether a node was removed"},
		{"link: looks again", "the same while a connection lasts"},
		{"link: strangers make room", "to close a stranger's connection where there are too many"},
	}},
	{"pandocluster/internal/machine", "Retry|Split|Equal|Counted", []part{
		{"cluster: the oldest change waits for none", "to do the change for which all others wait to be acked"},
		{"cluster: what is held by the silent makes room", "to forget what a session holds that is silent for long"},
		{"cluster: results are bounded", "to keep no more results than a snapshot can have"},
		{"cluster: what is not known ends a node", "to end where an entry is of a kind that another version knows"},
		{"cluster: counted beside others", "to count a range again where other ranges' keys have come meanwhile"},
		{"cluster: a retry is applied once", "to answer a retry with the first result"},
		{"cluster: sessions in snapshots", "to keep sessions in snapshots"},
		{"cluster: a split cuts the bounds", "to cut the bounds of a range that has given keys away"},
		{"cluster: no change is half in a backup", "to take turns with changes when a range is exported"},
	}},
	{"pandocluster/internal/consensus", "", []part{
		{"cluster: as old as what is applied", "to count the age of a read from what is applied"},
		{"cluster: keys of a child's child", "to know a range of long ago by its children"},
		{"cluster: raft hears others beside a snapshot", "to receive a snapshot before raft reads it, and hears nobody"},
		{"cluster: snapshot synced", "to sync a snapshot before the log is cut"},
		{"cluster: close waits", "to end what waits in raft's queues"},
		{"cluster: read by the index", "to ask a majority who leads before a read"},
		{"cluster: what is committed, not what is applied", "to count what is committed before a read"},
		{"cluster: answers to this read", "the look whether answers are to what was asked for this read"},
		{"cluster: read when applied", "to read when what was acknowledged is applied"},
		{"cluster: a child's snapshot first", "to make durable with what a new range begins before its parent gives it up"},
		{"cluster: a leader's first read waits", "to wait, as a new leader, for what was committed before"},
		{"cluster: keys are one range's", "the look whether another range has the keys yet"},
		{"cluster: snapshots in use are kept", "to keep a snapshot that is being read"},
		{"cluster: a log before the snapshot is void", "to remove a log that ends before the snapshot, or is another's"},
		{"cluster: entries behind a snapshot stay", "to keep entries behind a snapshot of what is there"},
		{"cluster: the entry before the log", "to know the entry that the log begins behind by the snapshot"},
		{"cluster: no way back to a snapshot", "to take no snapshot of what was applied long ago"},
		{"cluster: one snapshot at a time", "to install no snapshot beside another"},
		{"cluster: only what was not committed is cut", "the look what a log has where it is to be cut"},
		{"cluster: keys that are another's stay", "the look whose a child's keys are before they go"},
		{"cluster: a snapshot's sync fails for good", "to end where a snapshot could not be synced"},
		{"cluster: a vote is one write", "to write the term of a vote together with its candidate"},
		{"cluster: a snapshot's last entry may be none of the machine's", "to wait for no entry that the machine never gets"},
	}},
	{"pandocluster", "Left|MemberNumbers|Busy|Removed|CaughtUp|Half|CloseBesideStart", []part{
		{"cluster: numbers of members by term", "to number members by the term of who adds them"},
		{"cluster: half a founder", "to forget what a node that was to found another cluster has begun"},
		{"cluster: close beside starts", "to wait, when a node is closed, for replicas that are about to start"},
		{"cluster: another member has caught up", "to ask a member how far it is, and not whoever is there"},
		{"cluster: removed under one leader", "the look whether one leader has seen a removal and committed it"},
		{"cluster: members as they were seen", "the look whether members are those by which a step was chosen"},
		{"cluster: busy is not done", "to take no range for done that had too much under way"},
		{"cluster: left and forgotten", "to note that a replica has left its range"},
		{"cluster: removals are kept", "to remember over a restart which nodes were removed"},
		{"cluster: a backup has what was acknowledged", "to wait, before a range is exported, for what was acknowledged"},
		{"cluster: a backup is checked first", "to check all files of a backup before anything is restored"},
		{"cluster: a bad backup is removed", "to remove what is there of a backup that fails"},
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
