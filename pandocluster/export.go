package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

const (
	mostExports = 4 // of a node at once: each is a copy of a range in memory
	chunkBytes  = 1 << 20
	idleExport  = time.Minute // after which an export ends of which nobody asks for more
)

// export is a range at one moment, as a file of Pando's that somebody takes away in chunks.
type export struct {
	chunks chan []byte // closed at the end
	keys   uint64      // how many; set before the end
	err    error       // set before the end
	stop   context.CancelFunc
	idle   *time.Timer
}

// exports are those of a node.
type exports struct {
	mu     sync.Mutex
	newest uint64
	of     map[uint64]*export
}

// serveExport begins an export of a range from a key on, with all that was acknowledged before.
func (n *Node) serveExport(ctx context.Context, r *consensus.Replica, from string) []byte {
	if !(mutant.On && mutant.Is("cluster: a backup has what was acknowledged")) {
		if err := n.fresh(ctx, r); err != nil {
			return errored(r, err)
		}
	}
	n.exports.mu.Lock()
	defer n.exports.mu.Unlock()
	if len(n.exports.of) >= mostExports {
		return refused(failed, fmt.Sprintf("%d exports are under way on this node", mostExports))
	}
	n.mu.Lock() // Close waits for exports that have begun, and none begins behind it
	defer n.mu.Unlock()
	if n.closed {
		return refused(failed, ErrClosed.Error())
	}
	at, ok := r.Machine().Cut(from)
	if !ok {
		return refused(notHere, "")
	}
	n.exports.newest++
	number := n.exports.newest
	sub, stop := context.WithCancel(n.ctx)
	e := &export{chunks: make(chan []byte, 1), stop: stop}
	e.idle = time.AfterFunc(idleExport, func() { n.endExport(number) })
	if n.exports.of == nil {
		n.exports.of = map[uint64]*export{}
	}
	n.exports.of[number] = e
	hi := at.Bounds().Hi
	n.tasks.Go(func() { e.run(sub, at) })
	return answered(packet.Bytes(packet.Uint(nil, number), hi))
}

// endExport forgets an export.
func (n *Node) endExport(number uint64) {
	n.exports.mu.Lock()
	defer n.exports.mu.Unlock()
	if e := n.exports.of[number]; e != nil {
		e.stop()
		e.idle.Stop()
		delete(n.exports.of, number)
	}
}

// run makes the file, and hands it out.
func (e *export) run(ctx context.Context, at *machine.Moment) {
	defer close(e.chunks)
	file, err := at.Keys()
	at.Close() // so that the tree need not keep what it was
	if err != nil {
		e.err = err
		return
	}
	defer file.Close()
	e.keys = uint64(file.Len())
	w := &chunks{ctx: ctx, to: e.chunks}
	_, err = file.WriteTo(w)
	e.err = errors.Join(err, w.flush())
}

// chunks cuts what is written.
type chunks struct {
	ctx context.Context
	to  chan []byte
	now []byte
}

func (c *chunks) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if c.now == nil {
			c.now = make([]byte, 0, chunkBytes)
		}
		some := min(len(p)-n, chunkBytes-len(c.now))
		c.now = append(c.now, p[n:n+some]...)
		n += some
		if len(c.now) == chunkBytes {
			if err := c.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (c *chunks) flush() error {
	if len(c.now) == 0 {
		return nil
	}
	select {
	case c.to <- c.now:
		c.now = nil
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// serveChunk returns whether it is the end, the next bytes of an export, or none yet, and at the end the number of keys.
func (n *Node) serveChunk(ctx context.Context, number uint64) []byte {
	n.exports.mu.Lock()
	e := n.exports.of[number]
	if e != nil {
		e.idle.Reset(idleExport)
	}
	n.exports.mu.Unlock()
	if e == nil {
		return refused(failed, "the node exports this no longer")
	}
	wait := time.NewTimer(n.o.Timeout / 4)
	defer wait.Stop()
	select {
	case some, ok := <-e.chunks:
		if ok {
			return answered(packet.Bytes(packet.Bool(nil, false), some))
		}
	case <-wait.C:
		return answered(packet.Bytes(packet.Bool(nil, false), ""))
	case <-ctx.Done():
		return refused(failed, ctx.Err().Error())
	}
	n.endExport(number)
	if e.err != nil {
		return refused(failed, e.err.Error())
	}
	return answered(packet.Uint(packet.Bytes(packet.Bool(nil, true), ""), e.keys))
}
