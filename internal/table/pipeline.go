package table

import (
	"io"
	"os"
	"sync"
)

// pipeline reads pieces of an input one after the other, works on several of
// them at a time, and returns the batches in the input's order. At most
// workers+1 pieces are in progress, each at most depth batches ahead.
type pipeline[J any] struct {
	in    *input
	read  func() (J, error) // returns the next piece, io.EOF at the end
	work  func(piece J, out outlet) error
	order chan *task[J] // pieces in the order they were read
	todo  chan *task[J] // pieces that no worker has taken yet
	free  chan *Batch   // batches to be reused
	stop  chan struct{} // closed when nobody wants more
	once  sync.Once
	crew  sync.WaitGroup // workers
	feed  sync.WaitGroup // the goroutine that reads

	current *task[J]
	lines   int   // lines of all batches returned, to locate an error
	err     error // permanent
}

// task is a piece and the batches made from it.
type task[J any] struct {
	piece J
	out   chan result
}

type result struct {
	batch *Batch
	lines int
	err   error
}

// outlet is where a worker takes empty batches from and sends full ones to.
type outlet struct {
	empty func() *Batch
	// send passes a batch on, with the number of input lines it stands for. It
	// returns false when nobody wants more.
	send func(full *Batch, lines int) bool
}

func startPipeline[J any](in *input, workers, depth int, read func() (J, error), work func(J, outlet) error) *pipeline[J] {
	p := &pipeline[J]{in: in, read: read, work: work,
		order: make(chan *task[J], workers), todo: make(chan *task[J], workers),
		free: make(chan *Batch, workers*(depth+1)+1), stop: make(chan struct{})}
	p.feed.Go(func() { p.feeder(depth) })
	for range workers {
		p.crew.Go(p.worker)
	}
	return p
}

// feeder reads pieces and queues them.
func (p *pipeline[J]) feeder(depth int) {
	defer close(p.order)
	defer close(p.todo)
	for {
		piece, err := p.read()
		t := &task[J]{piece: piece, out: make(chan result, depth)}
		if err != nil {
			t.out <- result{err: err}
			close(t.out)
		}
		select {
		case p.order <- t:
		case <-p.stop:
			return
		}
		if err != nil {
			return
		}
		select {
		case p.todo <- t:
		case <-p.stop:
			return
		}
	}
}

// worker turns pieces into batches.
func (p *pipeline[J]) worker() {
	for t := range p.todo {
		p.finish(t)
		close(t.out)
	}
}

// finish processes one piece.
func (p *pipeline[J]) finish(t *task[J]) {
	err := p.work(t.piece, outlet{p.empty, func(full *Batch, lines int) bool {
		return p.send(t, result{batch: full, lines: lines})
	}})
	if err != nil {
		p.send(t, result{err: err})
	}
}

// empty returns a batch to fill, reusing memory if there is some.
func (p *pipeline[J]) empty() *Batch {
	select {
	case b := <-p.free:
		return b
	default:
		return new(Batch)
	}
}

// send passes a result on, and reports whether anyone still wants more.
func (p *pipeline[J]) send(t *task[J], r result) bool {
	select {
	case t.out <- r:
		return true
	case <-p.stop:
		return false
	}
}

// Next implements Source.Next.
func (p *pipeline[J]) Next(b *Batch) error {
	for p.err == nil {
		r, ok := p.receive()
		if !ok {
			continue
		}
		if r.err != nil {
			p.err = p.place(r.err)
			break
		}
		p.lines += r.lines
		full := r.batch.Rows > 0
		if full {
			*b, *r.batch = *r.batch, *b
		}
		select {
		case p.free <- r.batch:
		default:
		}
		if full {
			return nil
		}
	}
	return p.err
}

// receive waits for the next result; it returns false if the current piece has
// no more.
func (p *pipeline[J]) receive() (result, bool) {
	if p.current == nil {
		select {
		case t, ok := <-p.order:
			if !ok {
				return result{err: io.EOF}, true
			}
			p.current = t
		case <-p.stop:
			return result{err: os.ErrClosed}, true
		}
	}
	select {
	case r, ok := <-p.current.out:
		if !ok {
			p.current = nil
		}
		return r, ok
	case <-p.stop:
		return result{err: os.ErrClosed}, true
	}
}

// place adds its path and its line in the whole input to an error.
func (p *pipeline[J]) place(err error) error {
	err = p.in.wrap(err)
	if e, ok := err.(*Error); ok && e.Line > 0 {
		e.Line += p.lines // wrap made a copy
	}
	return err
}

// Progress implements Source.Progress.
func (p *pipeline[J]) Progress() (done, total int64) { return p.in.Progress() }

// Close implements Source.Close. It waits for every goroutine, but not for a
// read of a pipe that may never return.
func (p *pipeline[J]) Close() error {
	p.once.Do(func() { close(p.stop) })
	if p.in.pipe {
		go func() {
			p.feed.Wait()
			p.crew.Wait()
			p.in.Close()
		}()
		return nil
	}
	p.feed.Wait()
	p.crew.Wait()
	return p.in.Close()
}
