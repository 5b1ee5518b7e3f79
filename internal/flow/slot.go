package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/invariant"
)

// Slot is the memory of one bucket while it is under way. It is sized in bytes:
// the Work gives them a meaning.
type Slot[B any] struct {
	Bucket  B
	In, Out []byte // page-locked
	DevIn   device.Ptr
	DevOut  device.Ptr
	Err     error // of sending it, or of the device
	times

	stream             device.Stream
	used               device.Stream
	pieces, next, left int // of the step it is in: all, not yet begun, not yet done
}

// times is when a bucket went through its steps.
type times struct {
	Queries     int             // in the bucket
	marks       [4]device.Event // sent, copied in, searched, copied out
	begun, sent time.Time
	gone, back  time.Time
	busy        atomic.Int64 // ns of all workers together, where that is timed
}

// MaxSlots lets two batches run at full flight; more share. It is the number of
// slots in most pools.
const MaxSlots = 2 * MaxFlight

// Pool is the slots of a schedule: a few, shared by all batches under way.
type Pool[B any] struct {
	dev    device.Device
	favor  func(device.Stream) // called with each new stream
	free   chan *Slot[B]
	closed chan struct{}
	mu     sync.Mutex
	made   int
	most   int
}

// Init makes a pool of at most as many slots on a device. favor is called for
// each new stream.
func (p *Pool[B]) Init(d device.Device, slots int, favor func(device.Stream)) {
	p.favor, p.most = favor, slots
	p.dev, p.free, p.closed = d, make(chan *Slot[B], slots), make(chan struct{})
}

// take returns a slot with room for a bucket, made now if there may be one
// more. It returns nil where the pool is closed, or none is free and wait is
// false.
func (p *Pool[B]) take(wait bool, in, out int) (*Slot[B], error) {
	select {
	case <-p.closed:
		return nil, nil
	case s := <-p.free:
		return p.grown(s, in, out)
	default:
	}
	if p.mayMake() {
		return p.grown(new(Slot[B]), in, out)
	}
	if !wait {
		return nil, nil
	}
	select {
	case <-p.closed:
		return nil, nil
	case s := <-p.free:
		return p.grown(s, in, out)
	}
}

func (p *Pool[B]) mayMake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == p.most {
		return false
	}
	p.made++
	return true
}

// grown makes sure that a slot has the memory it needs. On an error it goes
// back as it is: the device frees its memory.
func (p *Pool[B]) grown(s *Slot[B], in, out int) (*Slot[B], error) {
	if s.stream != nil && len(s.In) >= in && len(s.Out) >= out {
		return s, nil
	}
	fresh := s.stream == nil
	if err := s.grow(p.dev, in, out); err != nil {
		p.free <- s
		return nil, err
	}
	if fresh {
		p.favor(s.stream)
	}
	return s, nil
}

// Ensure makes the given number of slots, as far as there may be as many, and gives
// all slots room for buckets: a batch that needs no more does not fail for want of
// memory. The caller is the pool's only user meanwhile.
func (p *Pool[B]) Ensure(slots, in, out int) (err error) {
	slots = max(p.made, min(slots, p.most))
	var held []*Slot[B]
	for len(held) < slots {
		var s *Slot[B]
		if s, err = p.take(false, in, out); s == nil {
			break
		}
		held = append(held, s)
	}
	for _, s := range held {
		p.put(s)
	}
	return err
}

// put gives a slot back.
func (p *Pool[B]) put(s *Slot[B]) {
	if invariant.On {
		invariant.Check(len(p.free) < p.most, "more than %d slots come back", p.most)
	}
	p.free <- s
}

// Close waits for all slots, and lets no more be taken.
func (p *Pool[B]) Close() {
	close(p.closed)
	p.mu.Lock()
	made := p.made
	p.made = p.most
	p.mu.Unlock()
	for range made {
		<-p.free
	}
}

// grow gives a slot its stream and events, and room for more bytes.
func (s *Slot[B]) grow(d device.Device, in, out int) (err error) {
	if s.stream == nil {
		if s.stream, err = d.NewStream(); err != nil {
			return err
		}
	}
	for i := range s.marks {
		if s.marks[i] == nil {
			if s.marks[i], err = d.NewEvent(); err != nil {
				return err
			}
		}
	}
	if err := resize(d, &s.In, &s.DevIn, in); err != nil {
		return err
	}
	return resize(d, &s.Out, &s.DevOut, out)
}

// resize replaces a buffer, on host and device, by a larger one.
func resize(d device.Device, host *[]byte, dev *device.Ptr, bytes int) (err error) {
	if len(*host) >= bytes && *dev != 0 {
		return nil
	}
	if *host != nil {
		if err := d.HostFree(*host); err != nil {
			return err
		}
		*host = nil
	}
	if *dev != 0 {
		if err := d.Free(*dev); err != nil {
			return err
		}
		*dev = 0
	}
	if *host, err = d.HostAlloc(bytes); err != nil {
		return err
	}
	*dev, err = d.Alloc(bytes)
	return err
}
