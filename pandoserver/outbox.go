package pandoserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// outbox is the way of replies to a client. They are written at once where the client takes them. Where
// it does not, a goroutine waits until it does, and the session goes on with what comes: many clients
// send all commands of a pipeline before they read a reply, and would wait for a server that waits for them.
type outbox struct {
	conn     net.Conn
	limit    int           // bytes that wait at most
	patience time.Duration // how long a client may take nothing
	alive    func() bool   // whether something has come from the client in that time

	mu      sync.Mutex
	changed *sync.Cond // size or draining has changed
	waiting [][]byte   // what is to be written
	size    int        // its bytes, with those that are being written
	busy    bool       // the goroutine is there
	err     error      // no more is written
}

const (
	soon  = 20 * time.Millisecond // how long a session waits by itself for a client to take replies
	piece = 256 << 10             // bytes that a client has to take in its time
)

func newOutbox(conn net.Conn, limit int, patience time.Duration, alive func() bool) *outbox {
	o := &outbox{conn: conn, limit: limit, patience: patience, alive: alive}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// Write writes replies, or leaves them to the goroutine. It waits while there are too many.
func (o *outbox) Write(b []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy && o.err == nil {
		if n, err = o.try(b, min(soon, o.patience)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	for o.err == nil && o.size > 0 && o.size+len(b)-n > o.limit {
		o.changed.Wait()
	}
	if o.err != nil {
		return n, o.err
	}
	o.waiting = append(o.waiting, append([]byte(nil), b[n:]...))
	o.size += len(b) - n
	if !o.busy {
		o.busy = true
		go o.drain()
	}
	return len(b), nil
}

// try writes what the client takes within d.
func (o *outbox) try(b []byte, d time.Duration) (int, error) {
	if err := o.conn.SetWriteDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	return o.conn.Write(b)
}

// drain writes what waits, until nothing does.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.waiting) > 0 {
		b := o.waiting[0]
		o.waiting = o.waiting[1:]
		for o.err == nil && len(b) > 0 {
			o.mu.Unlock()
			n, err := o.try(b[:min(len(b), piece)], o.patience)
			late := errors.Is(err, os.ErrDeadlineExceeded) && (n > 0 || o.alive())
			o.mu.Lock()
			b = b[n:]
			o.size -= n
			if err != nil && !late {
				o.err = err
			}
			o.changed.Broadcast()
		}
	}
	if o.err != nil {
		o.waiting = nil
		o.conn.Close() // the session need not read any more
	}
	o.busy = false
	o.changed.Broadcast()
}

// end waits until all is written, and returns why it is not.
func (o *outbox) end() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.busy {
		o.changed.Wait()
	}
	return o.err
}
