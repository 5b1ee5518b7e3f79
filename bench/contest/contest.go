// Package contest is how systems are measured: an experiment runs in a
// session, its systems take turns in rounds, each answer is checked, and what
// was measured becomes a table and a file. It knows no system, no key and no
// device.
package contest

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	figures "github.com/pando-index/pando/bench/report"
)

// Subject is one system in a contest, with the work of one round.
type Subject struct {
	System    string
	Bytes     float64 // per entry; 0: not reported
	Reference bool    // the row that ratios are relative to
	PerOp     int     // number of matches per operation, for experiments that report it; 0: none
	Whole     bool    // the work cannot be divided: every round does all of it
	OnGPU     bool    // the contest's number of threads does not apply to it

	Do    func(ops int) error  // the timed work: the first ops operations of the round
	Check func(ops int) error  // checks the answers. Untimed
	Reset func()               // drops what the work made. Untimed; may be nil
	Clock func() time.Duration // the time of the last do, if it timed itself; may be nil
}

// Contest is one set of systems that answer the same queries, round by round.
type Contest struct {
	N, Threads int
	Label      string
	Ops        int             // maximum operations of a system in one round
	First      int             // operations to find out with how many a system can do, 0 for 4096: fewer where one takes long
	Fresh      func(round int) // makes the round's queries. Untimed; may be nil
	Subjects   []*Subject
}

// Row is one line of a table and one object of the JSON.
type Row struct {
	figures.Row
	group int // the same for all rows of one contest
}

// NewRow returns a row that no contest measures, for Add.
func NewRow(system, label string, n int) *Row {
	return &Row{Row: figures.Row{System: system, Case: label, N: n}}
}

// Set fills an extra column.
func (r *Row) Set(column string, v float64) {
	if r.Extra == nil {
		r.Extra = map[string]float64{}
	}
	r.Extra[column] = v
}

// Beside reports whether two rows are of one contest, or of one set of counts.
func (r *Row) Beside(other *Row) bool { return r.group == other.group }

// Add adds a row that no contest has measured. Those added until endSet is
// called stand together in the table.
func (s *Session) Add(r *Row) {
	r.group = s.contests
	s.Rows = append(s.Rows, r)
}

// EndSet ends a set of such rows.
func (s *Session) EndSet() { s.contests++ }

// Compete measures the contest and adds a row for each subject. The systems
// take turns: round r runs every one of them once before round r+1, so that a
// machine that slows down for a while slows all of them. Each round starts
// with another system, so that none always follows the same neighbor. The
// garbage collector is off meanwhile. A wrong answer ends the run.
func (s *Session) Compete(c *Contest) error {
	if len(c.Subjects) == 0 {
		return nil
	}
	rows, err := s.calibrate(c)
	if err != nil {
		return err
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for round := range s.Rounds {
		s.Say("n %s, threads %d%s: round %d of %d", SizeText(c.N), c.Threads, prefixed(", ", c.Label), round+1, s.Rounds)
		if c.Fresh != nil {
			c.Fresh(round)
		}
		for i := range c.Subjects {
			at := (i + round) % len(c.Subjects)
			if err := measure(c.Subjects[at], rows[at]); err != nil {
				return c.Wrong(c.Subjects[at], err)
			}
		}
	}
	summarize(c, rows)
	s.contests++
	s.Rows = append(s.Rows, rows...)
	if s.Measured == nil {
		return nil
	}
	return s.Measured()
}

// Wrong returns an error of a subject, with what it was asked to do.
func (c *Contest) Wrong(sub *Subject, err error) error {
	return fmt.Errorf("%s at n %s, threads %d%s: %w", sub.System, SizeText(c.N), c.Threads, prefixed(", ", c.Label), err)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// calibrate finds how many operations each subject can do in the target time,
// by doing more and more of them; that also warms it up. Work that cannot be
// divided is not warmed up: it is done from scratch each time.
func (s *Session) calibrate(c *Contest) ([]*Row, error) {
	if c.Fresh != nil {
		c.Fresh(-1)
	}
	rows := make([]*Row, len(c.Subjects))
	for i, sub := range c.Subjects {
		rows[i] = &Row{group: s.contests, Row: figures.Row{System: sub.System, Case: c.Label, N: c.N, Threads: c.Threads, Ops: c.Ops,
			BytesPerEntry: sub.Bytes, Reference: sub.Reference}}
		if sub.OnGPU {
			rows[i].Threads = 0
		}
		if sub.Whole {
			continue
		}
		ops, err := affordable(sub, cmp.Or(c.First, 4096), c.Ops, s.Seconds)
		if err != nil {
			return nil, c.Wrong(sub, err)
		}
		rows[i].Ops = ops
	}
	return rows, nil
}

// affordable returns the number of operations, at most most, that take about
// the given time. It tries first of them first.
func affordable(sub *Subject, first, most int, seconds float64) (int, error) {
	target := time.Duration(seconds * float64(time.Second))
	for ops := min(first, most); ; ops = min(ops*4, most) {
		took, _, err := once(sub, ops)
		if err != nil {
			return 0, err
		}
		if ops == most {
			return most, nil
		}
		if took > target/16 {
			fits := float64(ops) * float64(target) / float64(took)
			return max(ops, int(min(fits, float64(most)))), nil
		}
	}
}

func measure(sub *Subject, r *Row) error {
	took, allocs, err := once(sub, r.Ops)
	if err != nil {
		return err
	}
	r.Rounds = append(r.Rounds, float64(took.Nanoseconds())/float64(r.Ops))
	r.AllocsPerOp = max(r.AllocsPerOp, float64(allocs)/float64(r.Ops))
	return nil
}

// once does the work, timed, and checks it.
func once(sub *Subject, ops int) (took time.Duration, allocs uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err = sub.Do(ops)
	took = time.Since(start)
	if sub.Clock != nil {
		took = sub.Clock()
	}
	runtime.ReadMemStats(&after)
	if err == nil {
		err = sub.Check(ops)
	}
	if sub.Reset != nil {
		sub.Reset()
	}
	return took, after.Mallocs - before.Mallocs, err
}

// summarize fills in what follows from all rounds.
func summarize(c *Contest, rows []*Row) {
	for i, r := range rows {
		r.Best = slices.Min(r.Rounds)
		r.Median = Median(r.Rounds)
		if per := c.Subjects[i].PerOp; per > 0 {
			r.Set(ColPerMatch, r.Median/float64(per))
		}
	}
	at := slices.IndexFunc(rows, func(r *Row) bool { return r.Reference })
	if at < 0 || rows[at].Best == 0 { // a clock too coarse for the work
		return
	}
	for _, r := range rows {
		r.RatioMedian = r.Median / rows[at].Median
		r.RatioBest = r.Best / rows[at].Best
	}
}

// Median returns the middle value, or the mean of the two in the middle.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}
