package stalls

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
)

var waitsExp = &contest.Experiment{
	Name:     "waits",
	About:    "the longest that a single Set or Get of a Tree takes beside each other operation",
	CaseName: "beside",
	Sizes:    []int{16 * contest.Mega},
	Extra: []contest.ExtraColumn{{Name: colWait, Format: micro}, {Name: colWaitLeast, Format: micro}, {Name: colWaitTail, Format: contest.Plain}, {Name: colTimed, Format: contest.Whole},
		{Name: colBeside, Format: micro}, {Name: colBesides, Format: contest.Whole}, {Name: colCollections, Format: contest.Whole}},
	Run: runWaits,
}

// The extra columns of waits.
const (
	colWait        = "longest ms" // of all rounds the longest
	colWaitLeast   = "least ms"   // the longest of a round, of all rounds the least
	colWaitTail    = "p99.9 µs"   // of all rounds together
	colTimed       = "timed"      // calls that were timed
	colBeside      = "operation ms"
	colBesides     = "operations"
	colCollections = "collections" // that began while calls were timed
)

// micro formats milliseconds with three decimals, which are microseconds.
func micro(v float64) string { return fmt.Sprintf("%.3f", v) }

// The calls that are timed. The clock is read in the place of a call by the
// first: it shows the delays of the machine itself, and of the scheduler.
const (
	timedClock = "clock"
	timedSet   = "Set"
	timedGet   = "Get"
)

func runWaits(s *contest.Session) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2)))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dir, err := os.MkdirTemp("", "pando-waits-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tree")
	for _, threads := range s.Threads {
		if threads >= runtime.NumCPU() {
			s.Note("operations on %d threads leave no core of %d to the call that is timed", threads, runtime.NumCPU())
		}
	}
	for _, n := range s.Sizes {
		if wantsWaits(s, waitsOfNumbers) {
			if err := waitsOf(s, numbersToWaitFor(n, s.Seed), path, numberBesides); err != nil {
				return err
			}
		}
		if wantsWaits(s, waitsOfStrings) {
			if err := waitsOf(s, stringsToWaitFor(n, s.Seed), path, textBesides); err != nil {
				return err
			}
		}
	}
	return nil
}

// The trees that are measured.
const (
	waitsOfNumbers = "numbers"
	waitsOfStrings = "strings"
)

// wantsWaits reports whether any row of a tree may be wanted, so that its keys
// have to be made.
func wantsWaits(s *contest.Session, tree string) bool {
	other := waitsOfStrings
	if tree == waitsOfStrings {
		other = waitsOfNumbers
	}
	return len(s.Systems) == 0 || s.Wanted(tree) || !s.Wanted(other)
}

// waitsOf measures each call beside each operation.
func waitsOf[K pando.Key](s *contest.Session, d *waitKeys[K], path string, more func(*waiting[K]) []beside) error {
	s.Say("%s %s", contest.SizeText(len(d.keys)), d.name)
	for i, threads := range s.Threads {
		w := &waiting[K]{waitKeys: d, threads: threads, path: path}
		for _, b := range append(w.besides(), more(w)...) {
			if i > 0 && !b.parallel {
				continue // it has been measured
			}
			if err := waitsBeside(s, w, &b); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitsBeside adds the rows of one operation.
func waitsBeside[K pando.Key](s *contest.Session, w *waiting[K], b *beside) error {
	for _, call := range []string{timedClock, timedSet, timedGet} {
		system := w.name + ": " + call
		if !s.Wanted(system + " " + b.name) {
			continue
		}
		longest, least, sum := time.Duration(0), time.Duration(math.MaxInt64), &waitTimes{}
		for range s.Rounds {
			times, err := w.measure(b, call, time.Duration(s.Seconds*float64(time.Second)))
			if err != nil {
				return fmt.Errorf("%s beside %s: %w", system, b.name, err)
			}
			longest, least = max(longest, times.longest), min(least, times.longest)
			sum.add(times)
		}
		r := contest.NewRow(system, b.name, len(w.keys))
		r.Threads, r.Reference = w.threadsOf(b), b.name == besideNothing
		r.Set(colWait, longest.Seconds()*1e3)
		r.Set(colWaitLeast, least.Seconds()*1e3)
		r.Set(colWaitTail, sum.percentile(0.999).Seconds()*1e6)
		r.Set(colTimed, float64(sum.count))
		r.Set(colBeside, sum.operation.Seconds()*1e3)
		r.Set(colBesides, float64(sum.operations))
		r.Set(colCollections, float64(sum.collections))
		s.Add(r)
		s.Say("%s beside %s: longest %.3f ms", system, b.name, longest.Seconds()*1e3)
	}
	s.EndSet()
	return nil
}
