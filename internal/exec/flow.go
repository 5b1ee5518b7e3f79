package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// work is a batch as the flow of buckets sees it.
type work interface {
	// cut puts the next bucket into a slot, and gives the number of pieces that
	// the CPU fills it in; false where none is left.
	cut(s *slot) (pieces int, ok bool)
	stage(s *slot, piece int)
	// send puts a bucket that is filled on its way in a stream.
	send(s *slot, st device.Stream) error
	// ends gives the number of pieces that the CPU finishes a bucket in.
	ends(s *slot) (pieces int)
	finish(s *slot, piece int)
	// rest lets the CPU do all that was not cut yet.
	rest()
	// spare cuts a piece off the end for a worker that has nothing else to do,
	// which answer does; false where the GPU will be through before.
	spare() (lo, hi int, ok bool)
	answer(lo, hi int)
}

// flow moves the buckets of one batch: each is filled by the CPU, piece by
// piece, sent, and finished by the CPU, piece by piece. Every worker takes the
// most urgent piece there is, of whichever bucket: the times T1 to T4 of the
// HB+-tree paper overlap as far as the way allows, and nobody waits for the
// slowest.
type flow struct {
	work    work
	slots   *pool
	workers int
	way     Way
	serial  device.Stream
	down    func() bool
	fail    func(error)
	clock   *clock
	bucket  int // queries for which slots must have room

	mu      sync.Mutex
	news    atomic.Uint32    // changes when there may be something to do
	idle    sync.Cond        // for those who wait long
	waiting int              // workers in it
	held    int              // slots that the batch has
	staging *slot            // being filled
	flying  [maxFlight]*slot // sent, oldest first
	n       int              // of them
	watched bool             // somebody waits for the oldest
	landed  [maxFlight]*slot // being finished
	m       int              // of them
	cutAll  bool             // nothing is left to cut

	panicked any
}

// of makes a flow one of a schedule's, for all batches to come.
func (f *flow) of(slots *pool, serial device.Stream, down func() bool, fail func(error)) {
	f.slots, f.serial, f.down, f.fail = slots, serial, down, fail
}

// reset makes a flow ready for a batch.
func (f *flow) reset(w work, way Way, bucket int) {
	f.work, f.way, f.bucket = w, way, bucket
	f.idle.L = &f.mu
	f.held, f.n, f.m, f.cutAll, f.panicked = 0, 0, 0, false, nil
}

// run moves all buckets of the batch.
func (f *flow) run() {
	par.Run(f.workers, f.workers, f)
	if v := f.panicked; v != nil {
		panic(v)
	}
	if !f.cutAll { // no slot to be had: the GPU is not used any more
		f.work.rest()
	}
	f.work, f.clock = nil, nil
}

// Do is one worker.
func (f *flow) Do(int) {
	f.lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.finishPiece() || f.stagePiece() || f.begin():
		case f.n > 0 && !f.watched:
			f.arrive()
		case f.held == 0: // all is through, or nothing can be done
			f.wake()
			return
		case f.help():
		default:
			f.pause()
		}
	}
}

// help answers a piece on the CPU alone, while all buckets are the GPU's: so a
// slow GPU never makes a batch slower than the CPU would be without it.
func (f *flow) help() bool {
	lo, hi, ok := f.work.spare()
	if !ok {
		return false
	}
	f.mu.Unlock()
	defer f.caught()
	f.work.answer(lo, hi)
	return true
}

// caught takes the flow again after something that may have panicked. The
// panic goes on when the flow is over.
func (f *flow) caught() {
	v := recover()
	f.lock()
	if v != nil {
		f.panicked = v
	}
}

// lock takes the flow. It is never held for long: to wait on one's feet is
// mostly faster than to be woken.
func (f *flow) lock() {
	for range 100 {
		if f.mu.TryLock() {
			return
		}
		simd.Pause()
	}
	f.mu.Lock()
}

// pause waits until there may be something to do: half a millisecond or so on
// one's feet, which is what a bucket takes, then asleep. To be woken takes so
// long that a bucket would be through before most are there: 380 instead of
// 160 µs for its last step, on 16 cores.
func (f *flow) pause() {
	seen := f.news.Load()
	f.mu.Unlock()
	for i := 0; i < 3000 && f.news.Load() == seen; i++ {
		simd.Pause()
	}
	f.lock()
	if f.news.Load() == seen {
		f.waiting++
		f.idle.Wait()
		f.waiting--
	}
}

// wake tells those who pause that something is new.
func (f *flow) wake() {
	f.news.Add(1)
	if f.waiting > 0 {
		f.idle.Broadcast()
	}
}

// finishPiece finishes a piece of a bucket that is back, if there is one.
func (f *flow) finishPiece() bool {
	for i := range f.m {
		s := f.landed[i]
		if s.next < s.pieces {
			piece := s.next
			s.next++
			f.unlocked(s, piece, true)
			if s.left--; s.left == 0 {
				f.through(s)
			}
			return true
		}
	}
	return false
}

// unlocked does a piece while others have the flow. One that panics counts as
// done, so that all slots come back; the panic goes on when the flow is over.
func (f *flow) unlocked(s *slot, piece int, finish bool) {
	f.mu.Unlock()
	defer f.caught()
	var begun time.Time
	if f.clock != nil {
		begun = time.Now()
		defer func() { s.busy.Add(int64(time.Since(begun))) }()
	}
	if finish {
		f.work.finish(s, piece)
	} else {
		f.work.stage(s, piece)
	}
}

// through gives the slot of a bucket back that is finished.
func (f *flow) through(s *slot) {
	if f.clock != nil {
		f.clock.finished(s, f.workers)
	}
	i := 0
	for f.landed[i] != s {
		i++
	}
	f.m--
	f.landed[i] = f.landed[f.m]
	f.held--
	f.slots.put(s)
	f.wake()
}

// stagePiece fills a piece of the bucket to be sent next, and sends it after
// the last.
func (f *flow) stagePiece() bool {
	s := f.staging
	if s == nil || s.next == s.pieces {
		return false
	}
	piece := s.next
	s.next++
	f.unlocked(s, piece, false)
	if s.left--; s.left == 0 {
		f.depart(s)
	}
	return true
}

// begin takes a slot for the next bucket, if there is one to be had. A batch
// waits for a slot only if it holds none, so that none waits for another.
func (f *flow) begin() bool {
	if f.cutAll || f.staging != nil || f.held == f.way.flight() || f.down() {
		return false
	}
	s, err := f.slots.take(f.held == 0, f.bucket)
	if err != nil {
		f.fail(err)
	}
	if s == nil {
		return false
	}
	pieces, ok := f.work.cut(s)
	if !ok {
		f.cutAll = true
		f.slots.put(s)
		return true
	}
	f.held++
	f.staging = s
	s.pieces, s.next, s.left, s.err = pieces, 0, pieces, nil
	s.begun = time.Now()
	s.busy.Store(0)
	if pieces == 0 {
		f.depart(s)
	}
	f.wake()
	return true
}

// depart sends a bucket that is filled. What goes wrong is dealt with when it
// arrives.
func (f *flow) depart(s *slot) {
	s.sent = time.Now()
	s.used = s.stream
	if f.way == Pipelined {
		s.used = f.serial
	}
	f.staging = nil // the next one is filled while this one is sent
	f.wake()
	f.mu.Unlock()
	s.err = f.work.send(s, s.used)
	if s.err == nil {
		s.err = s.used.Record(s.marks[3])
	}
	s.gone = time.Now()
	f.lock()
	f.flying[f.n] = s
	f.n++
	f.wake()
}

// arrive waits for the oldest bucket. One that failed is marked: its answers
// come from the CPU.
func (f *flow) arrive() {
	s := f.flying[0]
	f.watched = true
	f.mu.Unlock()
	if s.err == nil {
		s.err = s.marks[3].Synchronize()
	} else {
		s.used.Synchronize() // what was sent of it must be over before the slot is used again
	}
	if s.err != nil {
		f.fail(s.err)
	}
	f.lock()
	f.watched = false
	copy(f.flying[:], f.flying[1:f.n])
	f.n--
	if s.err == nil && f.clock != nil {
		f.clock.arrived(s)
	}
	s.pieces = f.work.ends(s)
	s.next, s.left, s.landed = 0, s.pieces, time.Now()
	f.landed[f.m] = s
	f.m++
	f.wake()
}

// slot is what one bucket needs while it is on its way.
type slot struct {
	stream  device.Stream
	marks   [4]device.Event // sent, copied in, searched, copied out
	params  kernel.Params
	errand  errand
	room    int    // queries it has room for
	in, out []byte // page-locked
	devIn   device.Ptr
	devOut  device.Ptr

	lo, hi int    // the queries in it
	deep   int    // so many of them are one level further
	keysAt []byte // keys and values in the caller's memory, where the GPU
	valsAt []byte // reaches it
	used   device.Stream
	err    error // what went wrong when it was sent

	pieces, next, left int // of the step it is in: all, not yet begun, not yet done
	begun, sent        time.Time
	gone, landed       time.Time
	busy               atomic.Int64 // ns of all workers together, where that is timed
}

// Bytes that a query may take in a slot, on either side: a key and the node it
// begins at; a value and a bit.
const (
	inBytes  = 8 + 4
	outBytes = 8 + 1
)

// slotBytes is the device memory of a slot.
func slotBytes(room int) int64 { return int64(room) * (inBytes + outBytes) }

// pool is the slots of a schedule: a few, shared by all batches under way.
type pool struct {
	dev    device.Device
	favor  func(device.Stream) // what a new stream is told
	free   chan *slot
	closed chan struct{}
	mu     sync.Mutex
	made   int
}

// maxSlots lets two batches run at full flight; more share.
const maxSlots = 2 * maxFlight

func (p *pool) init(d device.Device, favor func(device.Stream)) {
	p.favor = favor
	p.dev, p.free, p.closed = d, make(chan *slot, maxSlots), make(chan struct{})
}

// take gives a slot with room for a bucket, made now if there may be one more.
// It gives nil where the pool is closed, or none is free and wait is false.
func (p *pool) take(wait bool, room int) (*slot, error) {
	select {
	case <-p.closed:
		return nil, nil
	case s := <-p.free:
		return p.grown(s, room)
	default:
	}
	if p.mayMake() {
		return p.grown(new(slot), room)
	}
	if !wait {
		return nil, nil
	}
	select {
	case <-p.closed:
		return nil, nil
	case s := <-p.free:
		return p.grown(s, room)
	}
}

func (p *pool) mayMake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == maxSlots {
		return false
	}
	p.made++
	return true
}

// grown makes sure that a slot has what it needs. On an error it goes back as
// it is: what is there stays the device's to free.
func (p *pool) grown(s *slot, room int) (*slot, error) {
	if s.room >= room {
		return s, nil
	}
	fresh := s.stream == nil
	if err := s.grow(p.dev, room); err != nil {
		p.free <- s
		return nil, err
	}
	if fresh {
		p.favor(s.stream)
	}
	return s, nil
}

// put gives a slot back.
func (p *pool) put(s *slot) {
	s.keysAt, s.valsAt = nil, nil // the caller's slices are not ours to keep
	p.free <- s
}

// close waits for all slots, and lets no more be taken.
func (p *pool) close() {
	close(p.closed)
	p.mu.Lock()
	made := p.made
	p.made = maxSlots
	p.mu.Unlock()
	for range made {
		<-p.free
	}
}

// grow gives a slot its stream and marks, and room for more queries.
func (s *slot) grow(d device.Device, room int) (err error) {
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
	if err := s.shrink(d); err != nil {
		return err
	}
	for _, b := range []struct {
		host  *[]byte
		dev   *device.Ptr
		bytes int
	}{{&s.in, &s.devIn, room * inBytes}, {&s.out, &s.devOut, room * outBytes}} {
		if *b.host, err = d.HostAlloc(b.bytes); err != nil {
			return err
		}
		if *b.dev, err = d.Alloc(b.bytes); err != nil {
			return err
		}
	}
	s.room = room
	return nil
}

// shrink gives back the buffers of a slot.
func (s *slot) shrink(d device.Device) error {
	s.room = 0
	for _, host := range []*[]byte{&s.in, &s.out} {
		if *host != nil {
			if err := d.HostFree(*host); err != nil {
				return err
			}
			*host = nil
		}
	}
	for _, dev := range []*device.Ptr{&s.devIn, &s.devOut} {
		if *dev != 0 {
			if err := d.Free(*dev); err != nil {
				return err
			}
			*dev = 0
		}
	}
	return nil
}
