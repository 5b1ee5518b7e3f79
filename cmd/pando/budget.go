package main

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/hostmem"
)

// budget is the memory that a build may take, and why it may not take more.
type budget struct {
	bytes  int64  // 0: not known, and not limited
	reason string // with %s for the bytes
	advice string
}

// or returns the smaller of two budgets.
func (b budget) or(bytes int64, reason, advice string) budget {
	if bytes >= b.bytes {
		return b
	}
	return budget{max(bytes, 1), reason, advice}
}

// unlimited is a budget that any other is smaller than.
var unlimited = budget{bytes: math.MaxInt64}

// newBudget returns the memory that a build may take. A limit above 0, of
// --memory, takes the place of the machine's free memory; the limits that were set
// for this process hold in any case.
func newBudget(limit int64) budget {
	b := spare(hostmem.Proc)
	if limit > 0 {
		b = unlimited.or(limit, "--memory allows %s", "allow more")
	}
	b = b.orGroups(hostmem.Proc, hostmem.Groups).orLimits(hostmem.Proc)
	b = b.or(debug.SetMemoryLimit(-1), "GOMEMLIMIT allows %s", "allow more")
	if b == unlimited {
		return budget{}
	}
	return b
}

// orGroups returns the smaller of a budget and the memory that control groups
// leave this process.
func (b budget) orGroups(proc, groups string) budget {
	return b.or(hostmem.LeftInGroups(proc, groups), "this process's control group leaves it %s", "allow it more")
}

// orLimits returns the smaller of a budget and half of the memory that `ulimit
// -v` and `ulimit -d` leave this process: half, since they count addresses, and
// the heap holds more of those than it uses, by the arenas it grows by and by
// freed memory. Linux alone tells them.
func (b budget) orLimits(proc string) budget {
	limits, status := hostmem.Text(filepath.Join(proc, "self/limits")), hostmem.Text(filepath.Join(proc, "self/status"))
	for _, l := range []struct{ name, used, flag string }{
		{"Max address space", "VmSize", "-v"},
		{"Max data size", "VmData", "-d"},
	} {
		limit, ok := softLimit(limits, l.name)
		if used, known := hostmem.Field(status, l.used); ok && known {
			b = b.or((limit-used<<10)/2, "ulimit "+l.flag+" leaves this process %s", "allow it more")
		}
	}
	return b
}

// softLimit finds a limit in the text of /proc/self/limits: its name, the limit
// that holds, the most it may be set to, and its unit.
func softLimit(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.Fields(rest + " -")[0], 10, 64)
			return n, err == nil // not where it is "unlimited"
		}
	}
	return 0, false
}

// hold makes the garbage collector work harder near the limit, which is better
// than running out of memory. It returns how to undo that.
func (b budget) hold() (undo func()) {
	if b.bytes == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(b.bytes) // never above what it was: see newBudget
	return func() { debug.SetMemoryLimit(before) }
}

// check returns an error if need bytes are too many for the given number of
// rows: those read so far, or a forecast of all.
func (b budget) check(need int64, rows int, forecast bool) error {
	if b.bytes == 0 || need <= b.bytes {
		return nil
	}
	what := fmt.Sprintf("the %s rows so far need", thousands(int64(rows)))
	if forecast {
		what = fmt.Sprintf("this input has about %s rows, which need", thousands(int64(rows)))
	}
	limit := fmt.Sprintf(b.reason, binary(b.bytes))
	return fmt.Errorf("%s %s to build, and %s; %s, narrower types (--type), sorted input, or fewer rows", what, binary(need), limit, b.advice)
}
