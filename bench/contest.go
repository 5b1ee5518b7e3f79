package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	figures "github.com/pando-index/pando/bench/report"
)

// subject is one system in a contest, with the work of one round.
type subject struct {
	system    string
	bytes     float64 // per entry; 0: not reported
	reference bool    // the row that ratios are relative to
	perOp     int     // number of matches per operation, for experiments that report it; 0: none
	whole     bool    // the work cannot be divided: every round does all of it
	onGPU     bool    // the contest's number of threads does not apply to it

	do    func(ops int) error  // the timed work: the first ops operations of the round
	check func(ops int) error  // checks the answers. Untimed
	reset func()               // drops what the work made. Untimed; may be nil
	clock func() time.Duration // the time of the last do, if it timed itself; may be nil
}

// contest is one set of systems that answer the same queries, round by round.
type contest struct {
	n, threads int
	label      string
	ops        int             // maximum operations of a system in one round
	fresh      func(round int) // makes the round's queries. Untimed; may be nil
	subjects   []*subject
}

// row is one line of a table and one object of the JSON.
type row struct {
	figures.Row
	group int // the same for all rows of one contest
}

// set fills an extra column.
func (r *row) set(column string, v float64) {
	if r.Extra == nil {
		r.Extra = map[string]float64{}
	}
	r.Extra[column] = v
}

// compete measures the contest and adds a row for each subject. The systems
// take turns: round r runs every one of them once before round r+1, so that a
// machine that slows down for a while slows all of them. Each round starts
// with another system, so that none always follows the same neighbor. The
// garbage collector is off meanwhile. A wrong answer ends the run.
func (s *session) compete(c *contest) error {
	if len(c.subjects) == 0 {
		return nil
	}
	rows, err := s.calibrate(c)
	if err != nil {
		return err
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for round := range s.rounds {
		s.say("n %s, threads %d%s: round %d of %d", sizeText(c.n), c.threads, prefixed(", ", c.label), round+1, s.rounds)
		if c.fresh != nil {
			c.fresh(round)
		}
		for i := range c.subjects {
			at := (i + round) % len(c.subjects)
			if err := measure(c.subjects[at], rows[at]); err != nil {
				return c.wrong(c.subjects[at], err)
			}
		}
	}
	summarize(c, rows)
	s.contests++
	s.rows = append(s.rows, rows...)
	if s.measured == nil {
		return nil
	}
	return s.measured()
}

func (c *contest) wrong(sub *subject, err error) error {
	return fmt.Errorf("%s at n %s, threads %d%s: %w", sub.system, sizeText(c.n), c.threads, prefixed(", ", c.label), err)
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
func (s *session) calibrate(c *contest) ([]*row, error) {
	if c.fresh != nil {
		c.fresh(-1)
	}
	rows := make([]*row, len(c.subjects))
	for i, sub := range c.subjects {
		rows[i] = &row{group: s.contests, Row: figures.Row{System: sub.system, Case: c.label, N: c.n, Threads: c.threads, Ops: c.ops,
			BytesPerEntry: sub.bytes, Reference: sub.reference}}
		if sub.onGPU {
			rows[i].Threads = 0
		}
		if sub.whole {
			continue
		}
		ops, err := affordable(sub, c.ops, s.seconds)
		if err != nil {
			return nil, c.wrong(sub, err)
		}
		rows[i].Ops = ops
	}
	return rows, nil
}

// affordable returns the number of operations, at most most, that take about
// the given time.
func affordable(sub *subject, most int, seconds float64) (int, error) {
	const first = 4096
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

func measure(sub *subject, r *row) error {
	took, allocs, err := once(sub, r.Ops)
	if err != nil {
		return err
	}
	r.Rounds = append(r.Rounds, float64(took.Nanoseconds())/float64(r.Ops))
	r.AllocsPerOp = max(r.AllocsPerOp, float64(allocs)/float64(r.Ops))
	return nil
}

// once does the work, timed, and checks it.
func once(sub *subject, ops int) (took time.Duration, allocs uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err = sub.do(ops)
	took = time.Since(start)
	if sub.clock != nil {
		took = sub.clock()
	}
	runtime.ReadMemStats(&after)
	if err == nil {
		err = sub.check(ops)
	}
	if sub.reset != nil {
		sub.reset()
	}
	return took, after.Mallocs - before.Mallocs, err
}

// summarize fills in what follows from all rounds.
func summarize(c *contest, rows []*row) {
	for i, r := range rows {
		r.Best = slices.Min(r.Rounds)
		r.Median = median(r.Rounds)
		if per := c.subjects[i].perOp; per > 0 {
			r.set(colPerMatch, r.Median/float64(per))
		}
	}
	at := slices.IndexFunc(rows, func(r *row) bool { return r.Reference })
	if at < 0 || rows[at].Best == 0 { // a clock too coarse for the work
		return
	}
	for _, r := range rows {
		r.RatioMedian = r.Median / rows[at].Median
		r.RatioBest = r.Best / rows[at].Best
	}
}

// median returns the middle value, or the mean of the two in the middle.
func median(v []float64) float64 {
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
