package work

import (
	"runtime"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// maxBuildSeconds bounds one build, in units of --seconds: building the
// slowest peer from sorted input stays below that at 64M, random insertion
// does not.
const maxBuildSeconds = 20

// BuildContests lets the builders take turns, for each number of threads. The
// peers use one thread and so run with the first number only.
func BuildContests[W data.Word](s *contest.Session, d *data.Dataset[W], input string, builders []peers.Builder[W]) error {
	for i, threads := range s.Threads {
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: input, Ops: len(d.Keys)}
		for _, b := range builders {
			if b.Peer && (i > 0 || !quickEnough(s, d, b)) || !s.Fits(b.Name, len(d.Keys), b.Peak) {
				continue
			}
			sub := BuildSubject(s, d, b, threads)
			sub.Reference = len(c.Subjects) == 0 && contest.IsPando(b.Name)
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// quickEnough estimates the time of one build from a part of the pairs, too
// low rather than too high, because trees get slower as they grow.
func quickEnough[W data.Word](s *contest.Session, d *data.Dataset[W], b peers.Builder[W]) bool {
	const parts = 64
	n := len(d.Keys) / parts
	if n < 4*contest.Kilo || !s.Wanted(b.Name) {
		return true
	}
	start := time.Now()
	if _, err := b.Make(&data.Dataset[W]{Keys: d.Keys[:n], Vals: d.Vals[:min(n, len(d.Vals))]}, 1); err != nil {
		return true // the contest will meet the error again, and report it
	}
	seconds := time.Since(start).Seconds() * parts
	if seconds <= maxBuildSeconds*s.Seconds {
		return true
	}
	s.Skip("%s at n %s: a build takes %.0f s or more; --seconds %.0f lets it run",
		b.Name, contest.SizeText(len(d.Keys)), seconds, seconds/maxBuildSeconds+1)
	return false
}

// BuildSubject returns a builder as a subject of a contest.
func BuildSubject[W data.Word](s *contest.Session, d *data.Dataset[W], b peers.Builder[W], threads int) *contest.Subject {
	var m peers.Made[W]
	return &contest.Subject{
		System: b.Name,
		Whole:  true,
		Do: func(int) (err error) {
			m, err = b.Make(d, threads)
			return err
		},
		Check: func(int) error { return m.Check(s, d) },
		Reset: func() {
			if m.Close != nil {
				m.Close()
			}
			m = peers.Made[W]{}
			runtime.GC() // the garbage collector is off
		},
	}
}
