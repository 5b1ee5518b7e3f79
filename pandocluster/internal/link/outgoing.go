package link

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// outgoing is what a connection has to send: messages, in turns of a frame each.
type outgoing struct {
	conn  net.Conn
	w     *bufio.Writer
	limit time.Duration // of a write

	wake chan struct{}

	mu     sync.Mutex
	turns  []*message
	queued int           // bytes of these
	fewer  chan struct{} // closed when queued gets less, if somebody waits for it
	closed bool
}

// message is what is left to send of a request, an answer or a sign.
type message struct {
	kind   kind // of the last frame: of those before it is part
	number uint64
	data   []byte
	off    bool // nobody waits for it: what is left is not sent
}

func newOutgoing(conn net.Conn, w *bufio.Writer, limit time.Duration) *outgoing {
	return &outgoing{conn: conn, w: w, limit: limit, wake: make(chan struct{}, 1)}
}

// send has a message sent, behind those that wait. It keeps the data until it was sent.
func (o *outgoing) send(k kind, number uint64, data []byte) {
	o.mu.Lock()
	if !o.closed {
		o.turns = append(o.turns, &message{kind: k, number: number, data: data})
		o.queued += len(data)
	}
	o.mu.Unlock()
	o.nudge()
}

// less takes bytes off the queue. The lock is held.
func (o *outgoing) less(n int) {
	o.queued -= n
	if o.fewer != nil {
		close(o.fewer)
		o.fewer = nil
	}
}

// room waits until fewer than most bytes are queued, or the connection has ended.
func (o *outgoing) room(most int) {
	for {
		o.mu.Lock()
		if o.queued < most || o.closed {
			o.mu.Unlock()
			return
		}
		if o.fewer == nil {
			o.fewer = make(chan struct{})
		}
		fewer := o.fewer
		o.mu.Unlock()
		<-fewer
	}
}

// callOff leaves out what was not sent of a request, and tells the other end.
func (o *outgoing) callOff(number uint64) {
	o.mu.Lock()
	for _, m := range o.turns {
		if m.number == number {
			o.less(len(m.data))
			m.off, m.data = true, nil
		}
	}
	o.mu.Unlock()
	o.send(cancel, number, nil)
}

func (o *outgoing) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// end has run return.
func (o *outgoing) end() {
	o.mu.Lock()
	o.closed, o.turns = true, nil
	o.less(o.queued)
	o.mu.Unlock()
	o.nudge()
}

// next returns the next frame, and whether there is one.
func (o *outgoing) next() (k kind, number uint64, data []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.turns) > 0 {
		m := o.turns[0]
		o.turns[0] = nil
		o.turns = o.turns[1:]
		switch {
		case m.off:
		case len(m.data) <= frame:
			o.less(len(m.data))
			return m.kind, m.number, m.data, true
		default:
			data, m.data = m.data[:frame], m.data[frame:]
			o.less(frame)
			o.turns = append(o.turns, m)
			return part, m.number, data, true
		}
	}
	return 0, 0, nil, false
}

// run sends until the connection fails, or end is called. Nobody waits for room then.
func (o *outgoing) run() error {
	defer o.end()
	for {
		k, number, data, ok := o.next()
		if !ok {
			if o.w.Buffered() > 0 {
				if err := o.flush(o.w.Flush); err != nil {
					return err
				}
				continue
			}
			<-o.wake
			o.mu.Lock()
			closed := o.closed
			o.mu.Unlock()
			if closed {
				return nil
			}
			continue
		}
		if err := o.flush(func() error { return writeFrame(o.w, k, number, data) }); err != nil {
			return err
		}
	}
}

// flush writes within the time limit. Then the connection is of no use any more.
func (o *outgoing) flush(write func() error) error {
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.limit)); err != nil {
		return err
	}
	return write()
}
