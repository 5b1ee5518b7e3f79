package pandoserver

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoserver/internal/resp"
	"github.com/pando-index/pando/pandostore"
)

// session is a connection. One goroutine serves it: it reads what has come, does all
// commands in it, writes all replies, and reads again.
type session struct {
	srv   *Server
	conn  net.Conn
	id    int64
	began time.Time

	r         resp.Reader
	w         resp.Writer
	out       *outbox
	db        *served
	pending   []call // commands on keys, to be done together
	gathering gathering
	multi     *queue // between MULTI and EXEC
	closing   bool   // after the replies so far
	failed    error  // why replies cannot be written
	patient   bool   // reading has a deadline

	last     atomic.Pointer[command]
	lastRead atomic.Int64 // nanoseconds since 1970
	held     atomic.Int64 // bytes of the read buffer

	mu    sync.Mutex // guards what others may ask for
	shown shown
}

// shown is what CLIENT LIST tells of a session.
type shown struct {
	name, lib, version string
	db, multi, proto   int
}

func newSession(srv *Server, conn net.Conn, id int64) *session {
	s := &session{srv: srv, conn: conn, id: id, began: time.Now(), db: srv.dbs[0]}
	s.r.Limits, s.w.Version, s.w.Limit = resp.Known, 2, srv.cfg.reply
	s.out = newOutbox(conn, srv.cfg.reply, srv.cfg.write, func() bool { return time.Since(time.Unix(0, s.lastRead.Load())) < srv.cfg.write })
	s.show(func(t *shown) { t.multi, t.proto = -1, 2 })
	return s
}

// show changes what others see of a session.
func (s *session) show(f func(t *shown)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.shown)
}

// flushAt is how many bytes of replies are gathered before some are written, though more
// commands wait.
const flushAt = 256 << 10

var (
	errReplies   = errors.New("replies exceed the limit")
	errLongReply = errors.New("the reply is too long: ask for less")
)

// serve answers a connection until it ends.
func (s *session) serve() {
	defer s.conn.Close()
	debug.SetPanicOnFault(true) // a file that is served may be cut short by others
	defer func() {
		if v := recover(); v != nil {
			s.srv.cfg.log.Error("a command has panicked", "client", s.id, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	err := s.loop()
	if dropped := s.out.end(); dropped != nil {
		err = dropped
	}
	if err != nil && !errors.Is(err, io.EOF) && !s.srv.stopping.Load() {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errReplies) {
			s.srv.stats.dropped.Add(1)
		}
		s.srv.cfg.log.Info("a connection was closed", "client", s.id, "address", s.conn.RemoteAddr(), "error", err)
	}
}

func (s *session) loop() error {
	for !s.closing {
		if err := s.fill(); err != nil {
			return err
		}
		if err := s.answer(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads once. There is a time limit while a command is not whole, and for those
// who send nothing if there is to be one.
func (s *session) fill() error {
	limit := s.srv.cfg.idle
	if s.r.Buffered() > 0 && (limit == 0 || limit > s.srv.cfg.partial) {
		limit = s.srv.cfg.partial
	}
	if limit > 0 || s.patient {
		s.patient = limit > 0
		until := time.Time{}
		if s.patient {
			until = time.Now().Add(limit)
		}
		if err := s.conn.SetReadDeadline(until); err != nil {
			return err
		}
	}
	if s.srv.stopping.Load() { // looked at behind the deadline, which end may have set before
		return io.EOF
	}
	err := s.r.Fill(s.conn)
	s.lastRead.Store(time.Now().UnixNano())
	s.held.Store(int64(s.r.Room()))
	s.srv.stats.reads.Add(1)
	return err
}

// answer does all commands that have come whole, and writes their replies.
func (s *session) answer() error {
	commands := int64(0)
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
		s.ease()
	}
	s.finish()
	s.srv.stats.commands.Add(commands)
	if s.failed == nil {
		s.flush()
	}
	return s.failed
}

// ease writes the replies so far if there are many.
func (s *session) ease() {
	if s.w.Len() > flushAt {
		s.flush()
	}
}

// flush writes the replies so far. If it cannot, the session ends.
func (s *session) flush() {
	if s.w.Over() {
		s.failed = errReplies
	} else {
		_, s.failed = s.w.WriteTo(s.out)
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
		s.srv.cfg.log.Warn("a connection that speaks HTTP was closed: a page may have tried to send commands", "client", s.id, "address", s.conn.RemoteAddr())
		s.closing = true
		return
	}
	cmd, problem := s.find(args)
	if cmd != nil {
		s.last.Store(cmd)
	}
	if problem == "" {
		problem = s.refuses(cmd)
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
		cmd.run(&c)
	}
}

// find returns the command that arguments name, or what is wrong with them.
func (s *session) find(args [][]byte) (cmd *command, problem string) {
	cmd = commands.find(args[0])
	if cmd == nil {
		return nil, unknown(args)
	}
	name := cmd.name
	if cmd.subs != nil && len(args) > 1 {
		sub := cmd.subs.find(args[1])
		if sub == nil {
			return nil, "ERR unknown subcommand '" + begin(args[1], 128) + "'. Try " + strings.ToUpper(cmd.name) + " HELP."
		}
		name, cmd = sub.full(cmd), sub
	}
	if !cmd.takes(len(args)) {
		return nil, wrongArgs(name)
	}
	return cmd, ""
}

// refuses returns why a command cannot be done now, or nothing.
func (s *session) refuses(cmd *command) string {
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
		size += len(a) + 32
	}
	if s.multi.bytes += size; s.multi.bytes > s.srv.cfg.transactions {
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
	s.w.Status("QUEUED")
}
