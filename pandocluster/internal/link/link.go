// Package link carries requests between the nodes of a cluster: over TLS, by certificates of the
// cluster (package ca), and nothing else is let in.
//
// A node that calls another one keeps a connection to it, on which all its requests and their answers
// travel in frames, those of long ones between those of others: so a heartbeat waits for a frame, not for a
// batch. A request with a body, a snapshot, has a connection of its own while it lasts, so that the
// network's flow control is the body's alone. A connection that says nothing for a while is given up; the next request makes a new one,
// after a pause that grows while none can be made.
//
// Whoever has no certificate of the cluster gets as far as the handshake: it has a time limit, and there is a bound on
// how many there are. What nodes send has bounds, too: they may be of another version, or broken.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/ca"
)

// protocol is what both ends have to speak: a later one that cannot be understood by this one has another name.
const protocol = "pando-cluster/1"

const (
	frame    = 32 << 10 // bytes of a frame at most
	Most     = 24 << 20 // bytes of a request, or of an answer, at most
	mostText = 4 << 10  // bytes of an error's text
	mostOpen = 4096     // requests of a connection that are under way
	mostHeld = 96 << 20 // bytes of these
	bodies   = 4        // requests with a body to one node at once
)

var (
	// ErrClosed is returned when the link was closed.
	ErrClosed = errors.New("the link is closed")

	// ErrTooLarge is returned for requests and answers that are too long.
	ErrTooLarge = fmt.Errorf("a request or an answer has more than %d bytes", Most)

	// ErrWrongNode is returned where another node is at an address than was called.
	ErrWrongNode = errors.New("another node is at this address")

	// ErrUnreachable is returned when no connection could be made, or was lost: nobody knows whether the request has
	// arrived.
	ErrUnreachable = errors.New("the node cannot be reached")
)

// Refused is an error of the other node's Handler.
type Refused struct{ Text string }

func (r *Refused) Error() string { return r.Text }

// Handler answers a request of the node whose name is from. The body is nil if there is none; what is not read of it is
// thrown away. It is called on a goroutine of its own.
type Handler func(ctx context.Context, from string, request []byte, body io.Reader) (answer []byte, err error)

// Options are limits and hooks; zeros stand for what is usual.
type Options struct {
	Dial      func(ctx context.Context, addr string) (net.Conn, error)
	Log       *slog.Logger
	Quiet     time.Duration // how long a connection may say nothing: 4 s
	Hands     time.Duration // how long a handshake may take: 5 s
	Strangers int           // connections of which it is not known yet who is there, at most: 256
}

// Link is one node's end of all connections.
type Link struct {
	id     *ca.Identity
	config *tls.Config
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	admit     func(name string, issued time.Time) error // nil: all of the cluster
	peers     map[string]*peer                          // by address
	conns     map[net.Conn]bool
	strangers map[net.Conn]bool // those of which nobody knows yet who they are
}

// New returns a link of a node.
func New(id *ca.Identity, o Options) *Link {
	if o.Dial == nil {
		d := &net.Dialer{KeepAlive: -1}
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Quiet <= 0 {
		o.Quiet = 4 * time.Second
	}
	if o.Hands <= 0 {
		o.Hands = 5 * time.Second
	}
	if o.Strangers <= 0 {
		o.Strangers = 256
	}
	l := &Link{id: id, config: id.Config(protocol), o: o, peers: map[string]*peer{}, conns: map[net.Conn]bool{}, strangers: map[net.Conn]bool{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Admit has f asked, from now on, whether a node of the cluster is let in, and called, with a certificate that was issued at a time:
// when a connection begins, and now and then while it lasts.
func (l *Link) Admit(f func(name string, issued time.Time) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admit = f
}

// end is the other end of a connection.
type end struct {
	l      *Link
	name   string
	state  tls.ConnectionState
	caller bool
	looked time.Time
}

// refused returns why a node is not let in, though it is one of the cluster.
func (e *end) refused() error {
	e.l.mu.Lock()
	admit := e.l.admit
	e.l.mu.Unlock()
	if admit == nil || mutant.On && mutant.Is("link: removed") {
		return nil
	}
	return admit(e.name, ca.Issued(e.state.PeerCertificates[0]))
}

// again looks, if the last time was a while ago, whether the node is still let in: it may have been removed since, or its
// certificate may be good no longer.
func (e *end) again() error {
	if time.Since(e.looked) < e.l.o.Quiet || mutant.On && mutant.Is("link: looks again") {
		return nil
	}
	e.looked = time.Now()
	if _, err := e.l.id.Check(e.state, e.caller); err != nil {
		return err
	}
	return e.refused()
}

// Close ends all connections, and all that waits for an answer. It returns when no Handler is called any more.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.cancel()
	l.tasks.Wait()
	return nil
}

// keep notes a connection, so that Close ends it; it reports false, and closes it, if the link is closed. Whoever keeps one calls drop.
func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	c.Close()
}

// spawn calls f on a goroutine that Close waits for, unless the link is closed.
func (l *Link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.tasks.Go(f)
	return true
}

// Serve answers requests of other nodes that come through a listener, until the link is closed or the listener fails.
func (l *Link) Serve(listener net.Listener, h Handler) error {
	stop := context.AfterFunc(l.ctx, func() { listener.Close() })
	defer stop()
	for {
		c, err := listener.Accept()
		if err != nil {
			if l.ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) {
				l.rest(100 * time.Millisecond)
				continue
			}
			return err
		}
		l.meet(c)
		if !l.spawn(func() { l.receive(c, h) }) {
			c.Close()
			return nil
		}
	}
}

// meet takes note of a connection of which nobody knows yet who is there. Where there are too many of these, another is closed,
// so that nodes come in, which say it at once.
func (l *Link) meet(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.strangers {
		if len(l.strangers) < l.o.Strangers || mutant.On && mutant.Is("link: strangers make room") {
			break
		}
		delete(l.strangers, other)
		other.Close()
	}
	l.strangers[c] = true
}

// met takes note that a connection is a node's, or has ended. It reports whether it was a stranger's until now.
func (l *Link) met(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.strangers[c]
	delete(l.strangers, c)
	return was
}

// rest waits for a while, or until the link is closed.
func (l *Link) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.ctx.Done():
	}
}

// receive finds out who has called, and answers what they ask.
func (l *Link) receive(c net.Conn, h Handler) {
	defer l.met(c)
	if !l.keep(c) {
		return
	}
	defer l.drop(c)
	s := tls.Server(c, l.config)
	from, kind, err := l.greeted(c, s)
	if err != nil {
		if l.met(c) { // else it made room for others
			l.o.Log.Warn("a connection was refused", "from", c.RemoteAddr().String(), "error", err)
		}
		return
	}
	if refused := from.refused(); refused != nil { // it hears why, and stays a stranger
		l.o.Log.Warn("a node was refused", "node", from.name, "from", c.RemoteAddr().String(), "error", refused)
		h = func(context.Context, string, []byte, io.Reader) ([]byte, error) { return nil, refused }
		defer time.AfterFunc(l.o.Quiet, func() { c.Close() }).Stop()
	} else {
		l.met(c)
	}
	if kind == forBodies {
		err = l.answerBodies(c, s, from.name, h)
	} else {
		err = l.answer(c, s, from, h)
	}
	if err != nil && !errors.Is(err, io.EOF) && l.ctx.Err() == nil {
		l.o.Log.Info("a connection has ended", "node", from.name, "error", err)
	}
}

// What a connection is for: its first byte.
const (
	forRequests = 'r'
	forBodies   = 'b'
)

// greeted does the handshake of a connection that was accepted, and returns who has called and what for.
func (l *Link) greeted(c net.Conn, s *tls.Conn) (from *end, kind byte, err error) {
	if err := c.SetDeadline(time.Now().Add(l.o.Hands)); err != nil {
		return nil, 0, err
	}
	if mutant.On && mutant.Is("link: handshake ends") {
		_ = c.SetDeadline(time.Time{})
	}
	if err := s.Handshake(); err != nil {
		return nil, 0, err
	}
	from, err = l.other(s, true)
	if err != nil {
		return nil, 0, err
	}
	var first [1]byte
	if _, err := io.ReadFull(s, first[:]); err != nil {
		return nil, 0, err
	}
	if first[0] != forRequests && first[0] != forBodies {
		return nil, 0, fmt.Errorf("node %s wants %q, which is not known here", from.name, first[0])
	}
	return from, first[0], c.SetDeadline(time.Time{})
}

// other returns the other end of a connection whose handshake is done.
func (l *Link) other(s *tls.Conn, caller bool) (*end, error) {
	e := &end{l: l, state: s.ConnectionState(), caller: caller, looked: time.Now()}
	n, err := l.id.Check(e.state, caller)
	e.name = n.Name
	return e, err
}

// connect makes a connection to an address, and returns which node is there. Whoever calls it calls drop.
func (l *Link) connect(ctx context.Context, addr string, kind byte) (c net.Conn, s *tls.Conn, to *end, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.Hands)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	c, err = l.o.Dial(ctx, addr)
	if err != nil {
		return nil, nil, nil, err
	}
	if !l.keep(c) {
		return nil, nil, nil, ErrClosed
	}
	s = tls.Client(c, l.config)
	if err = s.HandshakeContext(ctx); err == nil {
		to, err = l.other(s, false)
	}
	if err == nil {
		err = to.refused()
	}
	if err == nil {
		if err = c.SetDeadline(time.Now().Add(l.o.Hands)); err == nil {
			_, err = s.Write([]byte{kind})
		}
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		l.drop(c)
		return nil, nil, nil, err
	}
	return c, s, to, nil
}
