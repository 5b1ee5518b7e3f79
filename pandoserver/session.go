package pandoserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandoserver/internal/resp"
	"github.com/pando-index/pando/pandostore"
)

// session is a connection. One goroutine serves it: it reads what has come, does all
// commands in it, writes all replies, and reads again.
type session struct {
	srv  *Server
	raw  net.Conn
	conn net.Conn // raw, or TLS on it

	beneath *beneath // what TLS is on, nil without it
	id      int64
	began   time.Time

	r         resp.Reader
	w         resp.Writer
	out       *outbox
	to        io.Writer // out, or TLS on it
	db        *served
	user      *User     // nil before a client has said who it is
	strange   bool      // it has less room and time until then
	until     time.Time // when it has to have said so
	pending   []call    // commands on keys, to be done together
	gathering gathering
	multi     *queue    // between MULTI and EXEC
	closing   bool      // after the replies so far
	failed    error     // why replies cannot be written
	blamed    int       // errors of replies that count as those of a command
	patient   bool      // reading has a deadline
	since     time.Time // a command is under way that is not whole, or zero

	last     atomic.Pointer[command]
	lastRead atomic.Int64 // nanoseconds since 1970
	held     atomic.Int64 // bytes of the read buffer
	buffered atomic.Int64 // of them, those of a command that is not whole
	got      atomic.Int64 // bytes that have come
	sent     atomic.Int64 // bytes of replies, those that wait for the client among them
	commands atomic.Int64
	saving   atomic.Bool // SAVE is under way

	mu    sync.Mutex // guards what others may ask for
	shown shown
}

// shown is what CLIENT LIST tells of a session.
type shown struct {
	name, lib, version, user string
	db, multi, proto         int
	multiBytes               int // of the commands between MULTI and EXEC
}

func newSession(srv *Server, conn net.Conn, id int64) *session {
	s := &session{srv: srv, raw: conn, conn: conn, id: id, began: time.Now(), db: srv.dbs[0], user: srv.cfg.users.First()}
	s.w.Version = 2
	s.lastRead.Store(s.began.UnixNano())
	s.out = newOutbox(conn, srv.cfg.write, s.got.Load)
	s.to = s.out
	if srv.cfg.certs != nil {
		s.beneath = &beneath{Conn: conn, out: s.out, narrow: true, shakes: true, left: mostHandshake}
		t := tls.Server(s.beneath, srv.cfg.certs.Config())
		s.conn, s.to = t, t
	}
	s.confine()
	s.show(func(t *shown) { t.multi, t.proto = -1, 2 })
	s.show(func(t *shown) { t.user = s.user.named() })
	return s
}

// What a client may have that has not said who it is: with what TLS takes, that is all that its connection holds.
const (
	strangersReply = 8 << 10 // bytes of replies that wait for it
)

// confine leaves a client little room, and little time to say who it is.
func (s *session) confine() {
	s.strange, s.until = true, time.Now().Add(s.srv.cfg.stranger)
	s.r.Limits, s.w.Limit = resp.Unknown, strangersReply
	s.out.allow(strangersReply)
}

// welcome gives a client the room that those have who are known.
func (s *session) welcome() {
	s.strange = false
	if s.beneath != nil {
		s.beneath.narrow = false
	}
	s.r.Limits, s.w.Limit = resp.Known, s.srv.cfg.reply
	s.out.allow(s.srv.cfg.reply)
	s.srv.met(s)
}

// become makes a client a user, or nobody again.
func (s *session) become(user *User) {
	s.user = user
	s.show(func(t *shown) { t.user = user.named() })
	s.settle()
}

// settle gives a client the room that it may have now.
func (s *session) settle() {
	switch known := s.known(); {
	case known && s.strange:
		s.welcome()
	case !known && !s.strange:
		s.confine()
		s.srv.unknownAgain(s)
	}
}

// greet does what comes before commands: TLS' handshake.
func (s *session) greet() error {
	if t, ok := s.conn.(*tls.Conn); ok {
		if err := s.limitTime(s.until); err != nil {
			return err
		}
		if err := t.Handshake(); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		s.beneath.shakes = false
	}
	if s.known() {
		s.welcome()
	}
	return nil
}

// drop ends a connection at once, from any goroutine.
func (s *session) drop() { s.raw.Close() }

// userName returns the name of the user that a client is.
func (s *session) userName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.user
}

// show changes what others see of a session.
func (s *session) show(f func(t *shown)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.shown)
}

// flushAt returns how many bytes of replies are gathered before some are written, though more commands wait.
func (s *session) flushAt() int { return min(256<<10, s.w.Limit/4) }

// mostTogether is how many arguments commands have that are kept to be done together. One read brings fewer, but behind a
// long command, whose buffer is long, too.
const mostTogether = 1 << 16

var (
	errReplies   = errors.New("replies exceed the limit")
	errLongReply = errors.New("the reply is too long: ask for less")
)

// serve answers a connection until it ends.
func (s *session) serve() {
	defer s.raw.Close()
	debug.SetPanicOnFault(true) // a file that is served may be cut short by others
	defer func() {
		if v := recover(); v != nil {
			s.srv.cfg.log.Error("a command has panicked", "client", s.id, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	err := s.loop()
	if t, ok := s.conn.(*tls.Conn); ok && s.failed == nil {
		_ = t.CloseWrite() // which says that this is the end, behind all replies
	}
	if dropped := s.out.end(); dropped != nil {
		err = dropped
	}
	if err != nil && !errors.Is(err, io.EOF) && !s.srv.stopping.Load() {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errReplies) {
			s.srv.stats.dropped.Add(1)
		}
		s.srv.heard.Info("a connection was closed", "client", s.id, "address", s.conn.RemoteAddr(), "error", err)
	}
}

func (s *session) loop() error {
	if err := s.greet(); err != nil {
		return err
	}
	for !s.closing {
		if err := s.fill(); err != nil {
			return err
		}
		if err := s.answerOrEnd(); err != nil {
			return err
		}
	}
	return nil
}

// answerOrEnd is answer where a source may be unable to answer a read: then the connection ends behind an error, since nobody
// knows how much of a reply was written.
func (s *session) answerOrEnd() (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		down, ok := v.(error)
		if !ok || !errors.Is(down, ErrDown) {
			panic(v)
		}
		s.w.Error(s.problem(down))
		s.flush()
		s.closing, err = true, s.failed
	}()
	return s.answer()
}

// fill reads once. There is a time limit while a command is not whole, and for those
// who send nothing if there is to be one.
func (s *session) fill() error {
	s.settle() // its user may have been switched off or on
	until := s.deadline()
	if !until.IsZero() || s.patient {
		if err := s.limitTime(until); err != nil {
			return err
		}
	}
	if s.beneath != nil {
		s.beneath.left = mostBetween
	}
	before := s.r.Buffered()
	err := s.r.Fill(s.conn)
	s.got.Add(int64(s.r.Buffered() - before))
	s.srv.stats.received.Add(int64(s.r.Buffered() - before))
	s.buffered.Store(int64(s.r.Buffered()))
	s.lastRead.Store(time.Now().UnixNano())
	s.held.Store(int64(s.r.Room()))
	s.srv.stats.reads.Add(1)
	return err
}

// limitTime bounds how long a read waits, or not if until is zero. It returns an error if the server ends: that is looked
// at behind the deadline, which end may have set before.
func (s *session) limitTime(until time.Time) error {
	s.patient = !until.IsZero()
	if err := s.conn.SetReadDeadline(until); err != nil {
		return err
	}
	if s.srv.stopping.Load() {
		return io.EOF
	}
	return nil
}

// slowest is how many bytes a second a client has to send of a command, or take of replies.
const slowest = 1 << 10

// deadline returns until when the next read may wait: zero if for ever.
func (s *session) deadline() (until time.Time) {
	sooner := func(t time.Time) {
		if until.IsZero() || t.Before(until) {
			until = t
		}
	}
	if s.strange {
		sooner(s.until)
	}
	n := s.r.Buffered()
	if n == 0 {
		s.since = time.Time{}
	}
	if n == 0 && s.srv.cfg.idle == 0 {
		return until
	}
	now := time.Now()
	if n > 0 {
		if s.since.IsZero() {
			s.since = now
		}
		sooner(s.since.Add(s.srv.cfg.partial + time.Duration(n/slowest)*time.Second))
	}
	if s.srv.cfg.idle > 0 {
		sooner(now.Add(s.srv.cfg.idle))
	}
	return until
}

// answer does all commands that have come whole, and writes their replies.
func (s *session) answer() error {
	commands, errors := int64(0), s.w.Errors()
	for !s.closing {
		args, ok, err := s.r.Next()
		if err != nil {
			s.finish()
			s.w.Error("ERR " + err.Error())
			s.closing = true
			break
		}
		if !ok {
			break
		}
		s.dispatch(args)
		commands++
		s.since = time.Time{} // the next command begins
		if s.r.Returned() > mostTogether && !(mutant.On && mutant.Is("server: commands together")) {
			s.finish()
			s.r.Release()
		}
		s.ease()
	}
	s.finish()
	s.r.Trim() // before the replies wait for the client
	s.held.Store(int64(s.r.Room()))
	s.buffered.Store(int64(s.r.Buffered()))
	s.srv.stats.commands.Add(commands)
	s.commands.Add(commands)
	if n := s.w.Errors() - errors; n > 0 {
		s.srv.stats.errors.Add(int64(n))
	}
	if s.failed == nil {
		s.flush()
	}
	return s.failed
}

// ease writes the replies so far if there are many.
func (s *session) ease() {
	if s.w.Len() > s.flushAt() {
		s.flush()
	}
}

// flush writes the replies so far. If it cannot, the session ends.
func (s *session) flush() {
	if s.w.Over() {
		s.failed = errReplies
	} else {
		var n int64
		n, s.failed = s.w.WriteTo(s.to)
		s.sent.Add(n)
		s.srv.stats.sent.Add(n)
	}
	s.closing = s.closing || s.failed != nil
}

// ofBrowser reports whether a command is a line of HTTP. A page of a stranger can make a browser on this machine
// send a request here: its headers would be unknown commands, and what it posts would be done.
func ofBrowser(name []byte) bool {
	return is(name, "post") || is(name, "host:")
}

// dispatch does a command, or puts it where it is done later.
func (s *session) dispatch(args [][]byte) {
	if ofBrowser(args[0]) {
		s.finish()
		s.srv.heard.Warn("a connection that speaks HTTP was closed: a page may have tried to send commands", "client", s.id, "address", s.conn.RemoteAddr())
		s.closing = true
		return
	}
	cmd, problem := s.find(args)
	if cmd != nil {
		s.last.Store(cmd)
	}
	if problem == "" {
		problem = s.refuses(cmd, args)
	}
	if problem != "" {
		s.refused(cmd)
	}
	switch {
	case problem != "" && is(args[0], "exec"): // it ends the transaction all the same
		s.finish()
		s.discard()
		s.w.Error("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(problem, "ERR "))
	case problem != "":
		s.finish()
		s.w.Error(problem)
		if s.multi != nil {
			s.multi.broken = true
		}
	case s.multi != nil && cmd.flags&atOnce == 0:
		s.enqueue(cmd, args)
	case cmd.run == nil || cmd.flags&alone != 0:
		s.later(cmd, args)
	default:
		s.finish()
		c := call{session: s, cmd: cmd, args: args}
		c.timed(func() { cmd.run(&c) })
	}
}

// refused takes note of a command that is not done, nil for one that is none.
func (s *session) refused(cmd *command) {
	if cmd == nil {
		s.srv.stats.unknown.Add(1)
	} else {
		s.srv.stats.tallies[cmd.id].rejected.Add(1)
	}
}

// find returns the command that arguments name, nil if there is none, and what is wrong with them.
func (s *session) find(args [][]byte) (cmd *command, problem string) {
	cmd = commands.find(args[0])
	if cmd == nil {
		return nil, unknown(args)
	}
	name := cmd.name
	if cmd.subs != nil && len(args) > 1 {
		sub := cmd.subs.find(args[1])
		if sub == nil {
			return nil, "ERR unknown subcommand '" + begin(args[1], longestWord) + "'. Try " + strings.ToUpper(cmd.name) + " HELP."
		}
		name, cmd = sub.full(cmd), sub
	}
	if !cmd.takes(len(args)) {
		return cmd, wrongArgs(name)
	}
	return cmd, ""
}

// refuses returns why a command cannot be done now, or nothing.
func (s *session) refuses(cmd *command, args [][]byte) string {
	if problem := s.forbids(cmd, args); problem != "" {
		return problem
	}
	switch {
	case s.multi != nil && cmd.flags&noMulti != 0:
		return errInMulti
	case cmd.flags&writes != 0 && cmd.flags&ordered == 0 && s.db.live.Changer == nil:
		return errReadOnly
	}
	return ""
}

// problem returns an error of an index in redis' words.
func (s *session) problem(err error) string {
	switch {
	case errors.Is(err, pando.ErrMemoryLimit), errors.Is(err, pando.ErrOutOfMemory):
		return errOOM
	case errors.Is(err, pandostore.ErrReadOnly):
		return "MISCONF Errors writing to the log, changes are refused: " + err.Error()
	case errors.Is(err, ErrDown):
		return "CLUSTERDOWN " + err.Error()
	}
	return "ERR " + err.Error()
}

// queue is the commands of a transaction.
type queue struct {
	calls  []call
	bytes  int
	broken bool // one of them is none: nothing will be done
}

// enqueue keeps a command for EXEC. Its arguments are copied, since the buffer is used
// again.
func (s *session) enqueue(cmd *command, args [][]byte) {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	const ofCall = 2*int(unsafe.Sizeof(call{})) + 2*16 // calls are moved when there are more, and memory comes in sizes of its own
	if s.multi.bytes += size + len(args)*int(unsafe.Sizeof(args[0])) + ofCall; s.multi.bytes > s.srv.cfg.transactions {
		s.multi.broken, s.multi.calls = true, nil
		s.w.Error("ERR transaction exceeds its limit of memory")
		return
	}
	flat, own := make([]byte, 0, size), make([][]byte, len(args))
	for i, a := range args {
		from := len(flat)
		flat = append(flat, a...)
		own[i] = flat[from:len(flat):len(flat)]
	}
	s.multi.calls = append(s.multi.calls, call{session: s, cmd: cmd, args: own})
	s.show(func(t *shown) { t.multi, t.multiBytes = len(s.multi.calls), s.multi.bytes })
	s.w.Status("QUEUED")
}
