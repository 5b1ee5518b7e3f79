package cuart

import (
	"errors"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
)

// Changes is operations of host memory, in the order in which they are to be done.
type Changes struct {
	Keys  packing.Strings
	Vals  []byte    // as the tree has values; nil where nothing is set
	Kinds []op.Kind // nil where all are of one kind
	Kind  op.Kind
}

// MostChanges is the number of operations that are done at a time, and MostBytes that
// of their strings: the size of their page-locked memory.
const (
	MostChanges = 4 << 20
	MostBytes   = 256 << 20
)

// leastPart is the number of operations of a part. With fewer, launches cost more
// time than the shorter first trip saves.
const leastPart = 256 << 10

// Apply does operations, all of them or those before an error. A large batch is done in
// parts, of which one travels while the one before it is done: on an H200 keys of 32
// bytes with their values take 0.8 ns on the bus, and about as long to be done. Nobody may
// search meanwhile.
func (p *Port) Apply(c *Changes) error {
	n := c.Keys.Len()
	if n == 0 {
		return nil
	}
	if hi := p.fitting(&c.Keys, 0, partEnd(0, n, p.firstPart(n))); hi < n {
		return p.applyParts(c)
	}
	st := p.tree.run.Stream
	ops, err := p.load(&p.cargos[0], st, c, 0, n)
	if err != nil {
		return errors.Join(err, st.Synchronize())
	}
	return p.tree.Apply(ops) // which waits for all copies
}

// firstPart returns the operations of the first part of a batch. Nothing is done while
// these travel, so they are few; each part that follows has half as many more.
func (p *Port) firstPart(n int) int { return min(max(n/8, p.leastPart), MostChanges) }

// partEnd returns the end of a part of size operations from lo on, with the rest of the
// n operations where these are few.
func partEnd(lo, n, size int) int {
	if lo+size+size/2 > n {
		return min(n, lo+MostChanges)
	}
	return lo + size
}

// fitting returns the end of operations from lo on whose strings find room, hi at
// most.
func (p *Port) fitting(keys *packing.Strings, lo, hi int) int {
	if keys.Offsets != nil {
		for hi-lo > 1 && int(keys.Offsets[hi]-keys.Offsets[lo]) > MostBytes {
			hi = lo + (hi-lo)/2
		}
		return hi
	}
	for i, bytes := lo, 0; i < hi; i++ {
		if bytes += p.Takes(keys.At(i)); bytes > MostBytes && i > lo {
			return i
		}
	}
	return hi
}

// ferry is the stream in which parts of a batch travel, and when each cargo is there.
type ferry struct {
	stream device.Stream
	there  [2]device.Event
}

// open makes a ferry ready, once.
func (f *ferry) open(dev device.Device) (err error) {
	if f.stream == nil {
		f.stream, err = dev.NewStream()
	}
	for i := range f.there {
		if err == nil && f.there[i] == nil {
			f.there[i], err = dev.NewEvent()
		}
	}
	return err
}

func (f *ferry) close() (err error) {
	if f.stream != nil {
		err = f.stream.Close()
	}
	for _, e := range f.there {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	*f = ferry{}
	return err
}

// shipped is a part that is on its way, up to operation hi.
type shipped struct {
	ops *Ops
	hi  int
	err error
}

// applyParts does a batch in parts.
func (p *Port) applyParts(c *Changes) error {
	if err := p.ferry.open(p.tree.dev); err != nil {
		return err
	}
	n := c.Keys.Len()
	size := p.firstPart(n)
	next := p.ship(c, 0, size, 0)
	for turn := 1; ; turn++ {
		s := <-next
		if next = nil; s.err == nil && s.hi < n {
			size = min(size+size/2, MostChanges)
			next = p.ship(c, s.hi, size, turn%2)
		}
		err := s.err
		if err == nil {
			err = p.tree.run.Stream.Wait(p.ferry.there[(turn-1)%2])
		}
		if err == nil {
			err = p.tree.Apply(s.ops) // when it returns, its cargo may be used again
		}
		if err != nil {
			if next != nil {
				<-next
			}
			return errors.Join(err, p.ferry.stream.Synchronize()) // copies may be under way
		}
		if next == nil {
			return nil
		}
	}
}

// ship brings a part of about size operations, from lo on, on its way: another
// goroutine gathers it, if it has to be, and queues copies.
func (p *Port) ship(c *Changes, lo, size, cargo int) <-chan shipped {
	done := make(chan shipped, 1)
	go func() {
		f, s := &p.ferry, shipped{hi: p.fitting(&c.Keys, lo, partEnd(lo, c.Keys.Len(), size))}
		if s.ops, s.err = p.load(&p.cargos[cargo], f.stream, c, lo, s.hi); s.err == nil {
			s.err = f.stream.Record(f.there[cargo])
		}
		done <- s
	}()
	return done
}
