package pandoserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// outbox is the way of replies to a client. They are written at once where the client takes them. Where
// it does not, a goroutine waits until it does, and the session goes on with what comes: many clients
// send all commands of a pipeline before they read a reply, and would wait for a server that waits for them.
type outbox struct {
	conn     net.Conn
	limit    int           // bytes that wait at most
	patience time.Duration // how long a client may take nothing
	got      func() int64  // bytes that have come from the client
	had      int64         // the same when it was last late

	mu      sync.Mutex
	changed *sync.Cond   // size or draining has changed
	waiting [][]byte     // what is to be written
	size    atomic.Int64 // its bytes, with those that are being written; changed under mu
	busy    bool         // the goroutine is there
	err     error        // no more is written
}

const (
	soon  = 20 * time.Millisecond // how long a session waits by itself for a client to take replies
	piece = 256 << 10             // bytes that are written at once
	least = 1 << 10               // bytes of a piece that more may come to
)

func newOutbox(conn net.Conn, patience time.Duration, got func() int64) *outbox {
	o := &outbox{conn: conn, patience: patience, got: got}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// allow sets how many bytes may wait.
func (o *outbox) allow(limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = limit
}

// fastEnough reports whether a client that has taken n bytes in its time has done enough: it has to take some, or to send as many.
func (o *outbox) fastEnough(n int) bool {
	enough := max(1, int64(o.patience.Seconds()*slowest))
	got := o.got()
	sent := got - o.had
	o.had = got
	return int64(n) >= enough || sent >= enough
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
	for o.err == nil && o.size.Load() > 0 && int(o.size.Load())+len(b)-n > o.limit {
		o.changed.Wait()
	}
	if o.err != nil {
		return n, o.err
	}
	o.keep(b[n:])
	o.size.Add(int64(len(b) - n))
	if !o.busy {
		o.busy, o.had = true, o.got()
		go o.drain()
	}
	return len(b), nil
}

// keep copies replies to what waits, in pieces: so many small replies take no more than their bytes, and a long one
// is given back as it is written.
func (o *outbox) keep(b []byte) {
	for len(b) > 0 {
		if last := len(o.waiting) - 1; last >= 0 {
			room := o.waiting[last]
			n := min(cap(room)-len(room), len(b))
			o.waiting[last] = append(room, b[:n]...)
			b = b[n:]
		}
		if len(b) > 0 {
			o.waiting = append(o.waiting, make([]byte, 0, min(piece, max(least, len(b)))))
		}
	}
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
		o.waiting[0] = nil // it is given back when it is written
		o.waiting = o.waiting[1:]
		for o.err == nil && len(b) > 0 {
			o.mu.Unlock()
			n, err := o.try(b[:min(len(b), piece)], o.patience)
			late := errors.Is(err, os.ErrDeadlineExceeded) && o.fastEnough(n)
			o.mu.Lock()
			b = b[n:]
			o.size.Add(-int64(n))
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
