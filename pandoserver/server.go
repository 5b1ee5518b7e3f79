package pandoserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/pace"
	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// ErrExposed says that a server would be open to other machines without TLS and a user.
var ErrExposed = errors.New("pandoserver: other machines could reach this address")

// Server serves indexes. Make one with New.
type Server struct {
	cfg   config
	heard *slog.Logger // where what strangers can cause is written, of which there may be much
	dbs   []*served
	began time.Time

	// changes is held by whoever changes an index: shared by those who change one key at
	// a time, and alone by those whose changes belong together.
	changes sync.RWMutex

	mu       sync.Mutex
	sessions map[int64]*session
	unknown  map[int64]*session // of them, those whose client has yet to say who it is
	lastID   int64
	stopping atomic.Bool
	all      sync.WaitGroup

	saving     atomic.Bool
	lastSave   atomic.Int64          // seconds since 1970
	saveFailed atomic.Pointer[error] // of the last one, if it has
	runID      string
	stats      stats
	slow       slowLog
	longest    atomic.Int64 // bytes of a value, of those that have come by
	trust      atomic.Int64 // how many values may be taken out at once if none is longer
}

// longEnough is how long New waits for an index to say how long it is: one on machines of which too few are there yet
// may take its time, and is served all the same.
const longEnough = 10 * time.Second

// New makes a server of an index. It starts nothing: Serve does.
//
// Whatever else changes the index must do so by single operations or batches that do
// not depend on what was there: the server keeps changes apart that come to it, and
// knows of no others.
func New(src Source, opts ...Option) (*Server, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if cfg.certs != nil {
		cfg.certs.logTo(cfg.log)
	}
	s := &Server{cfg: cfg, heard: slog.New(pace.Quiet(cfg.log.Handler(), 10, time.Second)), began: time.Now(), sessions: map[int64]*session{}, unknown: map[int64]*session{}}
	s.lastSave.Store(s.began.Unix())
	s.stats.tallies = make([]tally, len(fullNames))
	s.slow.threshold = cfg.slow
	var id [20]byte
	_, _ = rand.Read(id[:]) // which never fails
	s.runID = hex.EncodeToString(id[:])
	s.trust.Store(valuesAtOnce / usualValue)
	for i, d := range append([]*served{{name: cfg.name, src: src}}, cfg.more...) {
		if d.src == nil || d.name == "" {
			return nil, fmt.Errorf("pandoserver: index %d has no source, or no name", i)
		}
		if _, taken := s.named(d.name); taken {
			return nil, fmt.Errorf("pandoserver: two indexes are called %q", d.name)
		}
		if _, isNumber := resp.ParseInt([]byte(d.name)); isNumber {
			return nil, fmt.Errorf("pandoserver: an index cannot be called %q, which is a number of one", d.name)
		}
		d.number = i
		if c, ok := d.src.(Changer); ok {
			if _, numbers := d.src.(Numbers); numbers {
				return nil, fmt.Errorf("pandoserver: the index %q has keys that are numbers, and can be changed: only bytes can be", d.name)
			}
			d.live = live{c, s}
		}
		if n, ok := d.length(longEnough, s.heard); n > 0 || !ok {
			s.trust.Store(1)
		}
		s.dbs = append(s.dbs, d)
	}
	return s, nil
}

// named returns the index of a name.
func (s *Server) named(name string) (*served, bool) {
	for _, d := range s.dbs {
		if d.name == name {
			return d, true
		}
	}
	return nil, false
}

// Serve answers connections until ctx is done. Then it takes no more of them, finishes the
// commands that have come, and returns nil. It closes connections that have not
// ended in the time that Grace sets, and the listener in any case; the indexes stay open. A
// checkpoint that SAVE or BGSAVE has asked for may still be under way: closing the store ends it.
//
// It returns ErrExposed for a listener that other machines can reach, unless there are TLS and users.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close()
	if err := s.Admits(l.Addr()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err := s.accept(ctx, l)
	return errors.Join(err, s.end())
}

// accept takes connections until ctx is done.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	wait := time.Duration(0)
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many files are open, say: that passes
			wait = min(max(2*wait, time.Millisecond), time.Second)
			s.cfg.log.Warn("cannot accept a connection", "error", err, "wait", wait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			continue
		}
		wait = 0
		s.begin(conn)
	}
}

// begin begins a session, unless there are too many.
func (s *Server) begin(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= s.cfg.clients {
		s.stats.refused.Add(1)
		go func() {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = conn.Write([]byte("-" + errMaxClients + "\r\n"))
			conn.Close()
		}()
		return
	}
	s.lastID++
	c := newSession(s, conn, s.lastID)
	s.sessions[c.id] = c
	if s.cfg.certs != nil || c.user == nil {
		s.meet(c)
	}
	s.stats.connections.Add(1)
	s.all.Add(1)
	go func() {
		defer s.all.Done()
		c.serve()
		s.mu.Lock()
		delete(s.sessions, c.id)
		delete(s.unknown, c.id)
		s.mu.Unlock()
	}()
}

// meet takes note of a connection whose client has yet to say who it is. Where there are too many of these, another
// is closed, so that clients come in who say it at once. The caller holds mu.
func (s *Server) meet(c *session) {
	for id, other := range s.unknown {
		if len(s.unknown) < s.cfg.strangers {
			break
		}
		s.stats.dropped.Add(1)
		delete(s.unknown, id)
		other.drop()
	}
	s.unknown[c.id] = c
}

// unknownAgain takes note that a client is no user any more.
func (s *Server) unknownAgain(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[c.id] == c {
		s.meet(c)
	}
}

// met takes note that a client has said who it is.
func (s *Server) met(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unknown, c.id)
}

// Users returns those who may use the server.
func (s *Server) Users() *Users { return s.cfg.users }

// Certificates returns what the server proves by who it is, or nil if it does not speak TLS.
func (s *Server) Certificates() *Certificates { return s.cfg.certs }

// each returns the sessions that there are, in the order in which they began.
func (s *Server) each() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for _, c := range s.sessions {
		all = append(all, c)
	}
	return all
}

// end ends all sessions.
func (s *Server) end() error {
	s.stopping.Store(true)
	for _, c := range s.each() {
		_ = c.conn.SetReadDeadline(time.Now()) // it answers what it has, and reads no more
	}
	if s.ended(s.cfg.grace) {
		return nil
	}
	for _, c := range s.each() {
		c.drop()
	}
	for until := time.Now().Add(max(s.cfg.grace, time.Second)); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if s.onlySaving() {
			return nil
		}
	}
	return fmt.Errorf("pandoserver: %d connections have not ended: their commands are still under way", len(s.each()))
}

// onlySaving reports whether all sessions have ended but those that wait for SAVE: whoever closes the index ends that.
func (s *Server) onlySaving() bool {
	for _, c := range s.each() {
		if !c.saving.Load() {
			return false
		}
	}
	return true
}

// ended waits for all sessions to end, for d at most.
func (s *Server) ended(d time.Duration) bool {
	done := make(chan struct{})
	go func() {
		s.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// valuesAtOnce is how many bytes of values a connection takes out of an index at once, as far as the
// longest that has come by tells; usualValue is how long one may be that has not. Of an index whose values have
// not been seen yet few are taken out first, and twice as many each time.
const (
	valuesAtOnce = 32 << 20
	usualValue   = 4 << 10
)

// atOnce returns how many values may be taken out of an index at once.
func (s *Server) atOnce() int {
	return int(max(1, min(s.trust.Load(), valuesAtOnce/max(usualValue, s.longest.Load()))))
}

// took takes note of values that have been taken out of an index at once, and returns their bytes.
func (s *Server) took(vals [][]byte) (size int) {
	for _, v := range vals {
		size += len(v)
		s.saw(len(v))
	}
	if n := s.trust.Load(); n < valuesAtOnce/usualValue && int64(len(vals)) >= n {
		s.trust.CompareAndSwap(n, 2*n)
	}
	return size
}

// saw takes note of a value of n bytes.
func (s *Server) saw(n int) {
	for {
		old := s.longest.Load()
		if int64(n) <= max(old, usualValue) || s.longest.CompareAndSwap(old, int64(n)) {
			return
		}
	}
}
