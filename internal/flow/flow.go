// Package flow moves buckets of work through a device. A batch is cut into
// buckets; each is filled by the CPU, piece by piece, sent, and finished by the
// CPU, piece by piece, while others are under way. It knows no search: what a
// bucket holds is a type parameter, what is done with it a Work.
//
//	         fill           send            wait          finish
//	bucket 0 ████ CPU ──▶ copy, kernel, ──▶ ····· ──▶ ████ CPU ──▶ slot is free
//	bucket 1      ████        copy back     ·····          ████
//	bucket 2           ████                      ·····
//
// Every worker takes the most urgent piece there is, of whichever bucket: the
// times T1 to T4 of the HB+-tree paper (section 5.4) overlap as far as the
// Overlap allows, and no worker waits for the slowest.
package flow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/invariant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Work is a batch as the flow sees it. Buckets of type B belong to it.
type Work[B any] interface {
	// Cut puts the next bucket into a slot, with Queries set, and returns the
	// number of pieces that the CPU fills it in; ok is false where no bucket is
	// left. Only one bucket is cut at a time.
	Cut(s *Slot[B]) (pieces int, ok bool)
	// Fill fills a piece of a bucket.
	Fill(s *Slot[B], piece int)
	// Send puts a bucket that is filled on its way in a stream.
	Send(s *Slot[B], st device.Stream) error
	// Ends returns the number of pieces that the CPU finishes a bucket in.
	Ends(s *Slot[B]) (pieces int)
	// Finish finishes a piece of a bucket that is back; where s.Err is set, it
	// does all of its work.
	Finish(s *Slot[B], piece int)
	// Done is called when a bucket is finished, before its slot is used again.
	Done(s *Slot[B])
	// Rest lets the CPU do all that was not cut yet.
	Rest()
	// Spare cuts a piece off the end for a worker that has nothing else to do,
	// which Answer does; ok is false where the device will be done before. It is
	// never called while a bucket is cut.
	Spare() (lo, hi int, ok bool)
	Answer(lo, hi int)
}

// Overlap is how buckets follow each other (section 5.4).
type Overlap uint8

const (
	Sequential     Overlap = iota // one bucket after the other
	Pipelined                     // the CPU works on one bucket while the GPU works on another
	DoubleBuffered                // and copies run while the GPU works on a third
)

func (o Overlap) String() string {
	return [...]string{"sequential", "pipelined", "double buffered"}[o]
}

// MaxFlight is the most buckets of a batch that are under way at once.
const MaxFlight = 4

// Flight returns the number of buckets under way at once: one that the CPU
// fills, one that it finishes, and those in between.
func (o Overlap) Flight() int { return [...]int{1, 3, MaxFlight}[o] }

// Schedule is what all flows over a device have in common.
type Schedule[B any] struct {
	Slots  Pool[B]
	Serial device.Stream // of the Pipelined overlap
	// Down reports whether the device is not used any more, and Fail says so.
	Down func() bool
	Fail func(error)
}

// Flow moves the buckets of one batch. It may be used for one batch after
// another.
type Flow[B any] struct {
	on      *Schedule[B]
	work    Work[B]
	workers int
	overlap Overlap
	clock   *Clock
	in, out int // bytes that slots must have

	mu        sync.Mutex
	changes   atomic.Uint32       // changes when there may be something to do
	idle      sync.Cond           // for those who wait long
	waiting   int                 // workers in it
	held      int                 // slots that the batch has
	cutting   bool                // a bucket is being cut
	filling   *Slot[B]            // the bucket that is being filled
	sent      [MaxFlight]*Slot[B] // oldest first
	nSent     int
	awaited   bool // a worker waits for the oldest
	finishing [MaxFlight]*Slot[B]
	nFinish   int
	allCut    bool // no bucket is left to cut

	panicked any
}

// Batch is what Run needs to know of a batch.
type Batch struct {
	Workers int
	Overlap Overlap
	In, Out int    // bytes that slots must have, into the device and out of it
	Clock   *Clock // where not nil, every step is timed
}

// Run moves all buckets of a batch.
func (f *Flow[B]) Run(on *Schedule[B], w Work[B], b Batch) {
	f.on, f.work, f.workers, f.overlap, f.clock, f.in, f.out = on, w, b.Workers, b.Overlap, b.Clock, b.In, b.Out
	f.idle.L = &f.mu
	f.allCut, f.panicked = false, nil
	par.Run(f.workers, f.workers, f)
	if invariant.On {
		invariant.Check(f.held == 0 && f.nSent == 0 && f.nFinish == 0 && f.filling == nil && !f.cutting,
			"a batch ends with %d slots, %d sent, %d finishing", f.held, f.nSent, f.nFinish)
	}
	if v := f.panicked; v != nil {
		f.work = nil
		panic(v)
	}
	if !f.allCut { // no slot to be had: the device is not used any more
		f.work.Rest()
	}
	f.work, f.clock = nil, nil
}

// Do is one worker.
func (f *Flow[B]) Do(int) {
	f.lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.finishPiece() || f.fillPiece() || f.begin():
		case f.nSent > 0 && !f.awaited:
			f.await()
		case f.held == 0: // all is done, or nothing can be done
			f.wake()
			return
		case f.help():
		default:
			f.pause()
		}
	}
}

// help answers a piece on the CPU alone, while all buckets are the device's: so
// a slow device never makes a batch slower than the CPU would be without it.
func (f *Flow[B]) help() bool {
	if f.cutting {
		return false
	}
	lo, hi, ok := f.work.Spare()
	if !ok {
		return false
	}
	f.mu.Unlock()
	defer f.relock()
	f.work.Answer(lo, hi)
	return true
}

// relock takes the lock again after something that may have panicked. The
// panic goes on when the flow is over.
func (f *Flow[B]) relock() {
	v := recover()
	f.lock()
	if v != nil {
		f.panicked = v
	}
}

// lock takes the lock. It spins briefly first: the lock is never held for
// long, and being woken usually costs more.
func (f *Flow[B]) lock() {
	for range 100 {
		if f.mu.TryLock() {
			return
		}
		simd.Pause()
	}
	f.mu.Lock()
}

// pause waits until there may be something to do. It spins for half a
// millisecond or so, which is what a bucket takes, before it sleeps: being woken
// takes so long that a bucket would be done before most workers are there (380
// instead of 160 µs for its last step, on 16 cores).
func (f *Flow[B]) pause() {
	seen := f.changes.Load()
	f.mu.Unlock()
	for i := 0; i < 3000 && f.changes.Load() == seen; i++ {
		simd.Pause()
	}
	f.lock()
	if f.changes.Load() == seen {
		f.waiting++
		f.idle.Wait()
		f.waiting--
	}
}

// wake tells the workers that pause that something has changed.
func (f *Flow[B]) wake() {
	f.changes.Add(1)
	if f.waiting > 0 {
		f.idle.Broadcast()
	}
}

// finishPiece finishes a piece of a bucket that is back, if there is one.
func (f *Flow[B]) finishPiece() bool {
	for i := range f.nFinish {
		s := f.finishing[i]
		if s.next < s.pieces {
			piece := s.next
			s.next++
			f.runPiece(s, piece, true)
			if s.left--; s.left == 0 {
				f.done(s)
			}
			return true
		}
	}
	return false
}

// runPiece does a piece without the lock. One that panics counts as done, so
// that all slots come back; the panic goes on when the flow is over.
func (f *Flow[B]) runPiece(s *Slot[B], piece int, finish bool) {
	f.mu.Unlock()
	defer f.relock()
	if f.clock != nil {
		begun := time.Now()
		defer func() { s.busy.Add(int64(time.Since(begun))) }()
	}
	if finish {
		f.work.Finish(s, piece)
	} else {
		f.work.Fill(s, piece)
	}
}

// done gives the slot of a bucket back that is finished.
func (f *Flow[B]) done(s *Slot[B]) {
	if f.clock != nil {
		f.clock.finished(&s.times, f.workers)
	}
	i := 0
	for f.finishing[i] != s {
		i++
	}
	f.nFinish--
	f.finishing[i] = f.finishing[f.nFinish]
	f.giveBack(s)
	f.wake()
}

// giveBack returns a slot to the pool.
func (f *Flow[B]) giveBack(s *Slot[B]) {
	f.held--
	f.work.Done(s)
	f.on.Slots.put(s)
}

// fillPiece fills a piece of the bucket to be sent next, and sends it after
// the last.
func (f *Flow[B]) fillPiece() bool {
	s := f.filling
	if s == nil || s.next == s.pieces {
		return false
	}
	piece := s.next
	s.next++
	f.runPiece(s, piece, false)
	if s.left--; s.left == 0 {
		f.send(s)
	}
	return true
}

// begin takes a slot for the next bucket, if there is one to be had. A batch
// waits for a slot only if it holds none, so that none waits for another.
func (f *Flow[B]) begin() bool {
	if f.allCut || f.cutting || f.filling != nil || f.held == f.overlap.Flight() || f.on.Down() {
		return false
	}
	s, err := f.on.Slots.take(f.held == 0, f.in, f.out)
	if err != nil {
		f.on.Fail(err)
	}
	if s == nil {
		return false
	}
	f.held++
	if invariant.On {
		invariant.Check(f.held <= f.overlap.Flight(), "%d buckets are under way, the most is %d", f.held, f.overlap.Flight())
	}
	if !f.cut(s) {
		f.allCut = true
		f.giveBack(s)
		f.wake()
		return true
	}
	f.filling = s
	if s.pieces == 0 {
		f.send(s)
	}
	f.wake()
	return true
}

// cut cuts the next bucket, without the lock: strings have to be measured.
func (f *Flow[B]) cut(s *Slot[B]) (ok bool) {
	f.cutting = true
	defer func() { f.cutting = false }()
	f.mu.Unlock()
	defer f.relock()
	s.begun = time.Now()
	s.pieces, ok = f.work.Cut(s)
	s.next, s.left, s.Err = 0, s.pieces, nil
	s.busy.Store(0)
	return ok
}

// send sends a bucket that is filled. What goes wrong is dealt with when it is
// awaited.
func (f *Flow[B]) send(s *Slot[B]) {
	s.sent = time.Now()
	s.used = s.stream
	if f.overlap == Pipelined {
		s.used = f.on.Serial
	}
	f.filling = nil // the next one is filled while this one is sent
	f.wake()
	f.mu.Unlock()
	s.Err = f.work.Send(s, s.used)
	if s.Err == nil {
		s.Err = s.used.Record(s.marks[3])
	}
	s.gone = time.Now()
	f.lock()
	f.sent[f.nSent] = s
	f.nSent++
	f.wake()
}

// await waits for the oldest bucket. One that failed is marked: its answers
// come from the CPU.
func (f *Flow[B]) await() {
	s := f.sent[0]
	f.awaited = true
	f.mu.Unlock()
	if s.Err == nil {
		s.Err = s.marks[3].Synchronize()
	} else {
		s.used.Synchronize() // what was sent of it must be over before the slot is used again
	}
	if s.Err != nil {
		f.on.Fail(s.Err)
	}
	f.lock()
	f.awaited = false
	copy(f.sent[:], f.sent[1:f.nSent])
	f.nSent--
	if s.Err == nil && f.clock != nil {
		f.clock.arrived(&s.times)
	}
	s.pieces = f.work.Ends(s)
	s.next, s.left, s.back = 0, s.pieces, time.Now()
	if invariant.On {
		invariant.Check(s.pieces > 0 && f.nFinish < MaxFlight, "%d pieces to finish beside %d buckets", s.pieces, f.nFinish)
	}
	f.finishing[f.nFinish] = s
	f.nFinish++
	f.wake()
}
