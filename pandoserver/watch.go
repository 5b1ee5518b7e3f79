package pandoserver

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/pandoserver/internal/metrics"
)

// This file is about what a server remembers of commands: how often, how long, how many at once, and the slow ones.

// stats counts what a server has done.
type stats struct {
	connections, refused, denied, dropped, commands, unknown, errors, reads, received, sent atomic.Int64

	hits, misses atomic.Int64      // keys that were looked up
	runs         metrics.Histogram // commands that were done together
	keys         metrics.Histogram // operations on keys that were one batch
	tallies      []tally           // of each command
}

// tally counts what became of a command.
type tally struct {
	times            metrics.Histogram // microseconds; their sum in nanoseconds
	failed, rejected atomic.Int64
}

// did takes note of n calls of a command. Those that were done together took as long as all of them.
func (s *Server) did(cmd *command, n int, took time.Duration) {
	micros := uint64(max(0, took)+time.Microsecond-1) / uint64(time.Microsecond)
	s.stats.tallies[cmd.id].times.Add(micros, int64(took)*int64(n), int64(n))
}

// failed takes note of errors that calls of a command were answered with.
func (s *Server) failed(cmd *command, n int) { s.stats.tallies[cmd.id].failed.Add(int64(n)) }

// timed does something that is a call of a command, and takes note of it.
func (c *call) timed(do func()) {
	began := time.Now()
	c.counted(c.cmd, do)
	took := time.Since(began)
	c.srv.did(c.cmd, 1, took)
	c.srv.slow.see(c.session, c, 0, took)
}

// counted does something that answers calls of a command, and takes note of errors alone: of those that are not
// another command's, within a transaction.
func (s *session) counted(cmd *command, do func()) {
	before := s.w.Errors() - s.blamed
	do()
	if n := s.w.Errors() - s.blamed - before; n > 0 {
		s.srv.failed(cmd, n)
		s.blamed += n
	}
}

// didTogether takes note of commands that were done together.
func (s *Server) didTogether(c *session, calls []call, took time.Duration) {
	s.stats.runs.Add(uint64(len(calls)), int64(len(calls)), 1)
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && calls[to].cmd == calls[from].cmd {
			to++
		}
		s.did(calls[from].cmd, to-from, took)
		from = to
	}
	s.slow.see(c, &calls[0], len(calls)-1, took)
}

// looked takes note of keys that were looked up together.
func (s *stats) looked(hits, all int) {
	s.hits.Add(int64(hits))
	s.misses.Add(int64(all - hits))
}

// Bounds on SLOWLOG, which are redis' own.
const (
	slowEntries = 128
	slowArgs    = 32
	slowBytes   = 128 // of an argument
	usualSlow   = 10 * time.Millisecond
)

// slowLog has the last commands that took long.
type slowLog struct {
	threshold time.Duration // below zero: there are none

	mu      sync.Mutex
	lastID  int64
	entries []slow // the oldest first
}

// slow is a command that took long, with those that were done together with it.
type slow struct {
	id            int64
	at            time.Time
	took          time.Duration
	args          []string
	address, name string
}

// see takes note of a command, and of how many more were done with it, if they took long.
func (l *slowLog) see(s *session, c *call, more int, took time.Duration) {
	if l.threshold < 0 || took < l.threshold || !s.known() { // strangers could fill it: to look at a password takes long
		return
	}
	args := shortened(c)
	if more > 0 {
		args = append(args, "... ("+strconv.Itoa(more)+" more commands, done together)")
	}
	s.mu.Lock()
	name := s.shown.name
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == slowEntries {
		l.entries = append(l.entries[:0], l.entries[1:]...)
	}
	l.entries = append(l.entries, slow{l.lastID, time.Now(), took, args, s.conn.RemoteAddr().String(), name})
	l.lastID++
}

// shortened returns the arguments of a command as SLOWLOG has them: a part of them, and no passwords.
func shortened(c *call) (all []string) {
	for i, a := range c.args {
		switch {
		case i == slowArgs-1 && len(c.args) > slowArgs:
			return append(all, "... ("+strconv.Itoa(len(c.args)-i)+" more arguments)")
		case c.cmd.flags&secret != 0 && i > 0 && (c.cmd.name != "setuser" || i > 1):
			all = append(all, "(redacted)")
		case len(a) > slowBytes:
			all = append(all, string(a[:slowBytes])+"... ("+strconv.Itoa(len(a)-slowBytes)+" more bytes)")
		default:
			all = append(all, string(a))
		}
	}
	return all
}

// newest returns as many entries as are asked for, the newest first.
func (l *slowLog) newest(n int) (all []slow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.entries) - 1; i >= 0 && len(all) < n; i-- {
		all = append(all, l.entries[i])
	}
	return all
}

func (l *slowLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
