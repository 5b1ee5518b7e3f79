package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/mutant"
)

// peer is what a link has of an address that it calls.
type peer struct {
	l    *Link
	addr string

	mu      sync.Mutex
	now     *caller       // nil without a connection
	dialing chan struct{} // closed when an attempt has ended; nil if there is none
	failed  error         // of the last attempt
	after   time.Time     // no attempt is made before
	pause   time.Duration

	bodies chan struct{} // has one for each request with a body
}

// The pause after an attempt that has failed.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// Call sends a request, and a body behind it until io.EOF if there is one, to the node with a name, or to any of the
// cluster if that is empty, at an address. It returns what the node's Handler has answered: an error of that is a
// *Refused. A name may have more behind a dot, which does not count. When Call returns, nobody reads the body any more.
func (l *Link) Call(ctx context.Context, name, addr string, request []byte, body io.Reader) (answer []byte, err error) {
	if len(request) > Most {
		return nil, ErrTooLarge
	}
	l.mu.Lock()
	p := l.peers[addr]
	if p == nil && !l.closed {
		p = &peer{l: l, addr: addr, bodies: make(chan struct{}, bodies)}
		l.peers[addr] = p
	}
	l.mu.Unlock()
	if p == nil {
		return nil, ErrClosed
	}
	name, _, _ = strings.Cut(name, ".")
	if body != nil {
		return p.callBody(ctx, name, request, body)
	}
	c, err := p.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := wrong(name, c.to.name, addr); err != nil {
		return nil, err
	}
	return c.call(ctx, request)
}

// wrong returns an error if another node is at an address than the one that was asked for.
func wrong(want, is, addr string) error {
	if want == "" || want == is || mutant.On && mutant.Is("link: right node") {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, not %s", ErrWrongNode, addr, is, want)
}

// caller returns the connection for requests, and makes one if there is none.
func (p *peer) caller(ctx context.Context) (*caller, error) {
	for {
		p.mu.Lock()
		if p.now != nil {
			defer p.mu.Unlock()
			return p.now, nil
		}
		if p.dialing == nil {
			if wait := time.Until(p.after); wait > 0 {
				defer p.mu.Unlock()
				return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, p.addr, p.failed)
			}
			done := make(chan struct{})
			if !p.l.spawn(func() { p.dial(done) }) {
				p.mu.Unlock()
				return nil, ErrClosed
			}
			p.dialing = done
		}
		done := p.dialing
		p.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// dial makes a connection, and serves it until it ends.
func (p *peer) dial(done chan struct{}) {
	conn, s, to, err := p.l.connect(p.l.ctx, p.addr, forRequests)
	p.mu.Lock()
	p.dialing = nil
	if err != nil {
		p.pause = min(max(2*p.pause, leastPause), mostPause)
		p.after, p.failed = time.Now().Add(p.pause), err
		p.mu.Unlock()
		close(done)
		return
	}
	defer p.l.drop(conn)
	c := newCaller(conn, s, to, p.l.o.Quiet)
	p.now, p.pause, p.failed = c, 0, nil
	p.mu.Unlock()
	close(done)
	err = c.run()
	p.mu.Lock()
	p.now = nil
	p.mu.Unlock()
	c.end(err)
}

// caller is a connection for requests.
type caller struct {
	conn  net.Conn
	r     *bufio.Reader
	to    *end
	quiet time.Duration
	out   *outgoing

	mu     sync.Mutex
	number uint64
	open   map[uint64]*call
	held   int           // bytes of requests in open
	fewer  chan struct{} // closed when one ends, if somebody waits for it
	err    error         // why the connection has ended
}

// call is a request that is under way.
type call struct {
	size   int
	parts  []byte // of the answer; whoever reads the connection has them
	answer []byte
	err    error
	done   chan struct{}
}

func newCaller(conn net.Conn, s *tls.Conn, to *end, quiet time.Duration) *caller {
	return &caller{
		conn: conn, to: to, quiet: quiet, r: bufio.NewReaderSize(s, frame),
		out: newOutgoing(conn, bufio.NewWriterSize(s, frame), quiet), open: map[uint64]*call{},
	}
}

// call sends a request and waits for its answer.
func (c *caller) call(ctx context.Context, request []byte) ([]byte, error) {
	x := &call{size: len(request), done: make(chan struct{})}
	c.mu.Lock()
	for c.err == nil && (len(c.open) >= mostOpen || c.held > 0 && c.held+x.size > mostHeld) {
		if c.fewer == nil {
			c.fewer = make(chan struct{})
		}
		fewer := c.fewer
		c.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c.mu.Lock()
	}
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.number++
	number := c.number
	c.open[number] = x
	c.held += x.size
	c.out.send(last, number, request) // in the order of numbers
	c.mu.Unlock()
	select {
	case <-x.done:
		return x.answer, x.err
	case <-ctx.Done():
		if c.close(number, nil, ctx.Err()) {
			c.out.callOff(number)
		}
		<-x.done
		return x.answer, x.err
	}
}

// close ends a request, unless it has ended.
func (c *caller) close(number uint64, answer []byte, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.open[number]
	if x == nil {
		return false
	}
	x.answer, x.err = answer, err
	delete(c.open, number)
	c.held -= x.size
	if c.fewer != nil {
		close(c.fewer)
		c.fewer = nil
	}
	close(x.done)
	return true
}

// run serves the connection until it fails.
func (c *caller) run() error {
	sent := make(chan error, 1)
	stop := make(chan struct{})
	var tasks sync.WaitGroup
	tasks.Go(func() {
		sent <- c.out.run()
		c.conn.Close()
	})
	tasks.Go(func() {
		t := time.NewTicker(c.quiet / 4)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				c.out.send(ping, 0, nil)
			case <-stop:
				return
			}
		}
	})
	err := c.read()
	close(stop)
	c.conn.Close()
	c.out.end()
	tasks.Wait()
	if of := <-sent; of != nil {
		return errors.Join(err, of)
	}
	return err
}

// read takes answers in.
func (c *caller) read() error {
	var buffer [headBytes]byte
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(c.quiet)); err != nil {
			return err
		}
		if mutant.On && mutant.Is("link: quiet") {
			_ = c.conn.SetReadDeadline(time.Time{})
		}
		h, err := readHead(c.r, &buffer)
		if err == nil {
			err = c.to.again()
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		x := c.open[h.number]
		c.mu.Unlock()
		switch {
		case h.kind == pong:
		case h.kind != part && h.kind != last && h.kind != failed:
			return fmt.Errorf("an answer of kind %d", h.kind)
		case x == nil: // nobody waits for it any more
			_, err = c.r.Discard(h.length)
		case h.kind == failed:
			text := make([]byte, h.length)
			if _, err = io.ReadFull(c.r, text); err == nil {
				c.close(h.number, nil, &Refused{string(text)})
			}
		default:
			if len(x.parts)+h.length > Most {
				return ErrTooLarge
			}
			x.parts, err = appendFrom(c.r, x.parts, h.length)
			if err == nil && h.kind == last {
				c.close(h.number, x.parts, nil)
			}
		}
		if err != nil {
			return err
		}
	}
}

// appendFrom appends bytes that are read.
func appendFrom(r io.Reader, to []byte, n int) ([]byte, error) {
	at := len(to)
	to = append(to, make([]byte, n)...)
	_, err := io.ReadFull(r, to[at:])
	return to, err
}

// end has all requests return.
func (c *caller) end(err error) {
	c.mu.Lock()
	c.err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	var numbers []uint64
	for n := range c.open {
		numbers = append(numbers, n)
	}
	if c.fewer != nil {
		close(c.fewer)
		c.fewer = nil
	}
	c.mu.Unlock()
	for _, n := range numbers {
		c.close(n, nil, c.err)
	}
}
