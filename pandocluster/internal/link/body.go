package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// patience is how many times as long as another one a connection with a body may be quiet: it waits for disks, and goes at a
// pace.
const patience = 8

// callBody sends a request and its body on a connection of its own.
func (p *peer) callBody(ctx context.Context, name string, request []byte, body io.Reader) (answer []byte, err error) {
	select {
	case p.bodies <- struct{}{}:
		defer func() { <-p.bodies }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, s, is, err := p.l.connect(ctx, p.addr, forBodies)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, p.addr, err)
	}
	defer p.l.drop(conn)
	if err := wrong(name, is.name, p.addr); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	limit := patience * p.l.o.Quiet
	sent := make(chan error, 1)
	if !p.l.spawn(func() { sent <- sendBody(conn, s, limit, request, body) }) {
		return nil, ErrClosed
	}
	answer, err = readAnswer(conn, bufio.NewReader(s), limit)
	conn.Close() // so that nothing more of the body is sent
	of := <-sent // nobody reads the body any more
	var refused *Refused
	switch {
	case err == nil || errors.As(err, &refused):
		return answer, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if b := (*bodyError)(nil); errors.As(of, &b) {
		return nil, b.error
	}
	return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, p.addr, errors.Join(err, of))
}

// bodyError is an error of what a body is read from.
type bodyError struct{ error }

// sendBody sends a request, and its body behind it.
func sendBody(conn net.Conn, s *tls.Conn, limit time.Duration, request []byte, body io.Reader) error {
	w := bufio.NewWriterSize(s, frame+headBytes)
	send := func(k kind, data []byte) error {
		err := conn.SetWriteDeadline(time.Now().Add(limit))
		if err == nil {
			err = writeFrame(w, k, 0, data)
		}
		if err == nil {
			err = w.Flush()
		}
		return err
	}
	for len(request) > frame {
		if err := send(part, request[:frame]); err != nil {
			return err
		}
		request = request[frame:]
	}
	if err := send(last, request); err != nil {
		return err
	}
	data := make([]byte, frame)
	for {
		n, err := io.ReadFull(body, data)
		switch {
		case err == nil:
			err = send(part, data)
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return send(last, data[:n])
		default:
			_ = send(cancel, nil) // the other end is not to take this for the end
			return &bodyError{err}
		}
		if err != nil {
			return err
		}
	}
}

// readAnswer reads an answer, which is sent in pings until it is there.
func readAnswer(conn net.Conn, r *bufio.Reader, limit time.Duration) (answer []byte, err error) {
	var buffer [headBytes]byte
	for {
		if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return nil, err
		}
		h, err := readHead(r, &buffer)
		switch {
		case err != nil:
			return nil, err
		case h.kind == pong:
			continue
		case h.kind == cancel || h.kind == ping:
			return nil, fmt.Errorf("an answer of kind %d", h.kind)
		case len(answer)+h.length > Most:
			return nil, ErrTooLarge
		}
		if answer, err = appendFrom(r, answer, h.length); err != nil {
			return nil, err
		}
		switch h.kind {
		case failed:
			return nil, &Refused{string(answer)}
		case last:
			return answer, nil
		}
	}
}

// errCut is what a body ends with that was not sent whole.
var errCut = fmt.Errorf("the rest of the body was not sent: %w", io.ErrUnexpectedEOF)

// incoming is a body that is read.
type incoming struct {
	conn   net.Conn
	r      *bufio.Reader
	limit  time.Duration
	left   int  // bytes of the frame that is being read
	last   bool // there is none behind it
	err    error
	buffer [headBytes]byte
}

func (b *incoming) Read(p []byte) (n int, err error) {
	for b.err == nil && b.left == 0 && !b.last {
		b.err = b.next()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.left == 0:
		return 0, io.EOF
	}
	if err := b.conn.SetReadDeadline(time.Now().Add(b.limit)); err != nil {
		return 0, err
	}
	n, err = b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		b.err = errors.Join(errCut, err)
		err = b.err
	}
	return n, err
}

// next reads what is before a frame.
func (b *incoming) next() error {
	if err := b.conn.SetReadDeadline(time.Now().Add(b.limit)); err != nil {
		return err
	}
	h, err := readHead(b.r, &b.buffer)
	switch {
	case err != nil:
		return errors.Join(errCut, err)
	case h.kind == cancel:
		return errCut
	case h.kind != part && h.kind != last:
		return fmt.Errorf("a body of kind %d", h.kind)
	}
	b.left, b.last = h.length, h.kind == last
	return nil
}

// answerBodies answers a request with a body: one, then the connection ends.
func (l *Link) answerBodies(conn net.Conn, s *tls.Conn, from string, h Handler) error {
	b := &incoming{conn: conn, r: bufio.NewReaderSize(s, frame), limit: patience * l.o.Quiet}
	request := make([]byte, 0, 512)
	for !b.last {
		if err := b.next(); err != nil {
			return err
		}
		if len(request)+b.left > Most {
			return ErrTooLarge
		}
		var err error
		if request, err = appendFrom(b.r, request, b.left); err != nil {
			return err
		}
		b.left = 0
	}
	b.last = false

	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	out := newOutgoing(conn, bufio.NewWriterSize(s, frame), l.o.Quiet)
	var tasks sync.WaitGroup
	tasks.Go(func() { // the other end hears that somebody works
		t := time.NewTicker(l.o.Quiet)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				out.send(pong, 0, nil)
			case <-ctx.Done():
				return
			}
		}
	})
	sent := make(chan error, 1)
	tasks.Go(func() {
		sent <- out.run()
		cancel()
	})
	answer, err := h(ctx, from, request, b)
	cancel()
	switch {
	case err == nil && len(answer) > Most:
		out.send(failed, 0, text(ErrTooLarge))
	case err != nil:
		out.send(failed, 0, text(err))
	default:
		out.send(last, 0, answer)
	}
	// The other end closes the connection when it has the answer; until then what is left of the body is thrown away.
	_ = conn.SetReadDeadline(time.Now().Add(l.o.Quiet))
	_, _ = io.Copy(io.Discard, s)
	out.end()
	conn.Close()
	tasks.Wait()
	<-sent
	return nil
}
