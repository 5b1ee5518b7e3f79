package table

import (
	"io"
	"os"
	"sync"
)

// pipeline reads pieces of an input one after the other, works on several of
// them at a time, and gives the batches in the input's order. At most
// workers+1 pieces are under way, each at most depth batches ahead.
type pipeline[J any] struct {
	in    *input
	read  func() (J, error) // the next piece, io.EOF at the end
	work  func(piece J, out outlet) error
	order chan *task[J] // pieces as they were read
	todo  chan *task[J] // those that nobody works on yet
	free  chan *Batch   // batches to be reused
	stop  chan struct{} // closed when nobody wants more
	once  sync.Once
	crew  sync.WaitGroup // workers
	feed  sync.WaitGroup // the goroutine that reads

	current *task[J]
	lines   int   // of all batches given, for the place of an error
	err     error // stays
}

// task is a piece and the batches made of it.
type task[J any] struct {
	piece J
	out   chan result
}

type result struct {
	batch *Batch
	lines int
	err   error
}

// outlet is where a worker gets its batches and where it puts them.
type outlet struct {
	empty func() *Batch
	// send hands a batch on, with the lines of input it stands for. It gives
	// false when nobody wants more.
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

// feeder reads pieces and puts them into the line.
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

// finish works on one piece.
func (p *pipeline[J]) finish(t *task[J]) {
	err := p.work(t.piece, outlet{p.empty, func(full *Batch, lines int) bool {
		return p.send(t, result{batch: full, lines: lines})
	}})
	if err != nil {
		p.send(t, result{err: err})
	}
}

// empty gives a batch that may be filled, with used memory if there is some.
func (p *pipeline[J]) empty() *Batch {
	select {
	case b := <-p.free:
		return b
	default:
		return new(Batch)
	}
}

// send hands a result on, and says whether somebody is still interested.
func (p *pipeline[J]) send(t *task[J], r result) bool {
	select {
	case t.out <- r:
		return true
	case <-p.stop:
		return false
	}
}

// Next is Source.Next.
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

// receive waits for the next result; false if the piece at hand has no more.
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

// place gives an error its path and its line in the whole input.
func (p *pipeline[J]) place(err error) error {
	err = p.in.wrap(err)
	if e, ok := err.(*Error); ok && e.Line > 0 {
		e.Line += p.lines // wrap made a copy
	}
	return err
}

// Progress is Source.Progress.
func (p *pipeline[J]) Progress() (done, total int64) { return p.in.Progress() }

// Close is Source.Close. It waits for every goroutine, but not for a read of
// a pipe that may never return.
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
