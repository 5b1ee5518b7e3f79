// Package attack tries to break indexes for as long as it is told:
//
//	go test -v ./tests/attack -attack.time=1h
//
// It draws one case after the other: a configuration, a log of operations, and
// a model that knows the answers, all of them from the seed of the case alone.
// Several attacks share the time:
//
//	answers   every method, key type, layout, device and option against a sorted slice
//	faults    the same on devices that fail
//	files     files that were damaged or forged, opened in every way
//	close     goroutines that ask while another closes the index
//	trees     a Tree that changes, under a memory limit too, beside a model that changes with it
//	writers   goroutines that change a Tree at the same time
//	shut      goroutines that use a Tree in every way while another closes it
//	moments   goroutines that look for states which a Tree never had
//	idle      a Tree whose values have gone and that nobody uses, whose memory must be free
//	slow      functions of Update that take long, beside writers and snapshots
//	addresses trees in processes that can map little
//
// Without a time it tries a few cases of those that are up to the seed alone, as many each
// time. A case that fails is printed with the command that runs it again. Cases run
// in processes of their own, so that even a fault on any goroutine is told
// with its seed. With the build tag guard, memory of indexes ends at pages that
// cannot be read. docs/attack.md says more.
package attack

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	flagTime  = flag.Duration("attack.time", 0, "how long to attack, all attacks together; 0 is a few cases of each attack whose cases go the same way each time")
	flagOnly  = flag.String("attack.only", "", "attacks to run, by name and with commas between; all where it is empty")
	flagSeed  = flag.Uint64("attack.seed", 0, "seed of the run, from which those of its cases follow; 0 is that of PANDO_SEED, or another one each time")
	flagCase  = flag.Uint64("attack.case", 0, "run the case with this seed alone, of the one attack that -attack.only names")
	flagProcs = flag.Int("attack.processes", 0, "processes to attack in; 0 is one for two cores")
	flagChild = flag.Int("attack.child", -1, "for the processes that are started: the number of this one")
)

// attack is a way to try to break an index.
type attack struct {
	name string
	unit string // what its cases are
	run  func(c *testCase) error
	free bool // what its goroutines meet is up to the scheduler
}

var attacks = []attack{
	{"answers", "cases", func(c *testCase) error { return draw(c, pairs).answers(c) }, false},
	{"faults", "runs", func(c *testCase) error { return draw(c, pairs).faults(c) }, false},
	{"files", "files", func(c *testCase) error { return draw(c, pairs).files(c) }, false},
	{"close", "rounds", func(c *testCase) error { return draw(c, pairs).closing(c) }, true},
	{"trees", "trees", func(c *testCase) error { return draw(c, pairs).trees(c) }, false},
	{"writers", "runs", func(c *testCase) error { return draw(c, pairs).writers(c) }, true},
	{"shut", "rounds", func(c *testCase) error { return draw(c, crowds).shutting(c) }, true},
	{"moments", "runs", func(c *testCase) error { return draw(c, crowds).moments(c) }, true},
	{"idle", "trees", idle, true},
	{"slow", "runs", func(c *testCase) error { return draw(c, crowds).slow(c) }, true},
	{"addresses", "programs", addresses, true},
}

// TestAttack is the way in: it repeats one case, is one of the processes that
// attack, or starts them.
func TestAttack(t *testing.T) {
	chosen, err := choose(*flagOnly)
	if err != nil {
		t.Fatal(err)
	}
	if *flagTime == 0 && *flagCase == 0 {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(a attack) bool { return a.free })
	}
	switch {
	case len(chosen) == 0:
		t.Fatal("what goroutines meet differs from case to case: say by -attack.time how long to try")
	case *flagCase != 0 && len(chosen) != 1:
		t.Fatal("-attack.case needs -attack.only with the name of one attack")
	case *flagCase != 0:
		prepare(t)
		c := newCase(*flagCase, t.TempDir())
		if err := c.attacked(chosen[0]); err != nil {
			t.Fatalf("%v\n%s", err, c.log())
		}
		t.Logf("nothing broke in %d comparisons\n%s", c.compared.Load(), c.log())
	case *flagChild >= 0:
		prepare(t)
		child(t, chosen)
	default:
		parent(t, chosen)
	}
}

// choose returns the attacks of a list of names.
func choose(names string) ([]attack, error) {
	if names == "" {
		return attacks, nil
	}
	var chosen []attack
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no attack is called %q; there are %s", name, strings.Join(attackNames(), ", "))
		}
		chosen = append(chosen, attacks[i])
	}
	return chosen, nil
}

func attackNames() (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}
