package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/mutant"
)

// answering is a connection on which another node asks.
type answering struct {
	l    *Link
	from *end
	h    Handler
	out  *outgoing
	ctx  context.Context

	mu   sync.Mutex
	open map[uint64]*asked
	held int // bytes of these

	tasks sync.WaitGroup
}

// asked is a request that was not answered yet.
type asked struct {
	request []byte
	whole   bool
	cancel  context.CancelFunc // of a whole one
}

// answer answers what comes on a connection for requests, until it ends.
func (l *Link) answer(conn net.Conn, s *tls.Conn, from *end, h Handler) error {
	ctx, cancel := context.WithCancel(l.ctx)
	a := &answering{l: l, from: from, h: h, ctx: ctx, open: map[uint64]*asked{}, out: newOutgoing(conn, bufio.NewWriterSize(s, frame), l.o.Quiet)}
	sent := make(chan error, 1)
	a.tasks.Go(func() {
		sent <- a.out.run()
		conn.Close()
	})
	err := a.read(conn, bufio.NewReaderSize(s, frame))
	cancel()
	conn.Close()
	a.out.end()
	a.tasks.Wait()
	return errors.Join(err, <-sent)
}

// read takes requests in.
func (a *answering) read(conn net.Conn, r *bufio.Reader) error {
	var buffer [headBytes]byte
	newest := uint64(0)
	for {
		a.out.room(mostHeld) // whoever does not take answers gets no more
		if err := conn.SetReadDeadline(time.Now().Add(a.l.o.Quiet)); err != nil {
			return err
		}
		h, err := readHead(r, &buffer)
		if err == nil {
			err = a.from.again()
		}
		if err != nil {
			return err
		}
		switch h.kind {
		case ping:
			a.out.send(pong, 0, nil)
		case cancel:
			a.callOff(h.number)
		case part, last:
			a.mu.Lock()
			x := a.open[h.number]
			a.mu.Unlock()
			if x == nil {
				if h.number <= newest {
					return fmt.Errorf("request %d comes behind %d", h.number, newest)
				}
				newest = h.number
				x = &asked{}
			}
			if err := a.admit(x, h); err != nil {
				return err
			}
			if x.request, err = appendFrom(r, x.request, h.length); err != nil {
				return err
			}
			if h.kind == last {
				a.begin(h.number, x)
			}
		default:
			return fmt.Errorf("a request of kind %d", h.kind)
		}
	}
}

// admit counts a part of a request, and returns an error if it is too much.
func (a *answering) admit(x *asked, h head) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[h.number] = x
	a.held += h.length
	switch {
	case mutant.On && mutant.Is("link: bounds"):
	case x.whole:
		return fmt.Errorf("request %d goes on behind its end", h.number)
	case len(x.request)+h.length > Most:
		return ErrTooLarge
	case len(a.open) > mostOpen:
		return fmt.Errorf("more than %d requests at once", mostOpen)
	case a.held > mostHeld+Most: // one alone may be as large as it likes
		return fmt.Errorf("requests of more than %d bytes at once", mostHeld)
	}
	return nil
}

// begin has a request answered.
func (a *answering) begin(number uint64, x *asked) {
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	x.whole, x.cancel = true, cancel
	a.mu.Unlock()
	a.tasks.Go(func() {
		defer cancel()
		answer, err := a.h(ctx, a.from.name, x.request, nil)
		switch {
		case err == nil && len(answer) > Most:
			err = ErrTooLarge
			fallthrough
		case err != nil:
			a.out.send(failed, number, text(err))
		default:
			a.out.send(last, number, answer)
		}
		a.forget(number, x)
	})
}

func (a *answering) forget(number uint64, x *asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[number] == x {
		delete(a.open, number)
		a.held -= len(x.request)
	}
}

// callOff ends a request for whose answer nobody waits.
func (a *answering) callOff(number uint64) {
	a.mu.Lock()
	x := a.open[number]
	a.mu.Unlock()
	switch {
	case x == nil:
	case x.cancel != nil:
		x.cancel()
	default:
		a.forget(number, x)
	}
}
