// Package flow moves buckets of work through a device. A batch is cut into
// buckets; each is filled by the CPU, piece by piece, sent, and finished by the
// CPU, piece by piece, while others are under way. It knows no search: the
// contents of a bucket are a type parameter, the work on it is a Work.
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
	"fmt"
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
	// left. It is called with the flow's lock held and must be quick.
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
	// which Answer does; ok is false where the device will be done before. Like
	// Cut it must be quick.
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

// MaxLanes is the most buckets of a batch that are filled at once.
const MaxLanes = 16

// list is buckets in the same step.
type list[B any] struct {
	slots [MaxLanes]*Slot[B]
	n     int
}

func (l *list[B]) add(s *Slot[B]) {
	l.slots[l.n] = s
	l.n++
}

// remove takes a bucket out, and leaves the others in their order.
func (l *list[B]) remove(s *Slot[B]) {
	i := 0
	for l.slots[i] != s {
		i++
	}
	copy(l.slots[i:], l.slots[i+1:l.n])
	l.n--
	l.slots[l.n] = nil // a flow that waits for its next batch keeps nothing of the last
}

// piece returns a piece that nobody has begun, of the oldest bucket that has
// one.
func (l *list[B]) piece() (s *Slot[B], piece int, ok bool) {
	for _, s := range l.slots[:l.n] {
		if s.next < s.pieces {
			s.next++
			return s, s.next - 1, true
		}
	}
	return nil, 0, false
}

// Flight returns the number of buckets under way at once: one that the CPU
// fills, one that it finishes, and those in between.
func (o Overlap) Flight() int { return [...]int{1, 3, MaxFlight}[o] }

// Schedule is the common part of all flows over a device.
type Schedule[B any] struct {
	Slots  Pool[B]
	Serial device.Stream // of the Pipelined overlap
	serial sync.Mutex    // held while a bucket is sent in it
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
	lanes   int // buckets that may be filled at once
	most    int // slots that the batch may hold
	in, out int // bytes that slots must have

	mu        sync.Mutex
	changes   atomic.Uint32 // changes when there may be something to do
	idle      sync.Cond     // for workers that wait long
	waiting   int           // workers in it
	held      int           // slots that the batch has
	filling   list[B]
	sent      list[B] // oldest first
	awaited   bool    // a worker waits for the oldest
	finishing list[B]
	allCut    bool // no bucket is left to cut

	panicked any
}

// Batch describes a batch to Run.
type Batch struct {
	Workers int
	Overlap Overlap
	In, Out int    // bytes that slots must have, into the device and out of it
	Clock   *Clock // where not nil, every step is timed
	// Lanes is the number of buckets that may be filled at once, each of them in
	// a slot of its own; 0 means 1, and workers share the one that is filled.
	Lanes int
}

// Run moves all buckets of a batch.
func (f *Flow[B]) Run(on *Schedule[B], w Work[B], b Batch) {
	f.on, f.work, f.workers, f.overlap, f.clock, f.in, f.out = on, w, b.Workers, b.Overlap, b.Clock, b.In, b.Out
	f.lanes = min(max(b.Lanes, 1), MaxLanes)
	f.most = max(b.Overlap.Flight(), f.lanes)
	f.idle.L = &f.mu
	f.allCut, f.panicked = false, nil
	par.Run(f.workers, f.workers, f)
	if invariant.On {
		invariant.Check(f.held == 0 && f.filling.n == 0 && f.sent.n == 0 && f.finishing.n == 0,
			"a batch ends with %d slots, %d filling, %d sent, %d finishing", f.held, f.filling.n, f.sent.n, f.finishing.n)
	}
	if v := f.panicked; v != nil {
		f.work = nil
		panic(v)
	}
	if !f.allCut { // no slot to be had: the device is not used any more
		f.work.Rest()
	}
	f.on, f.work, f.clock = nil, nil, nil
}

// Do is one worker.
func (f *Flow[B]) Do(int) {
	f.lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.finishPiece() || f.fillPiece() || f.begin():
		case f.sent.n > 0 && !f.awaited:
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
func (f *Flow[B]) help() (did bool) {
	lo, hi, ok := f.work.Spare()
	if !ok {
		return false
	}
	did = true // also if it panics: there may be more to do
	f.mu.Unlock()
	defer f.relock()
	f.work.Answer(lo, hi)
	return did
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
// millisecond or so, the time of a bucket, before it sleeps: being woken takes
// so long that a bucket would be done before most workers are there (380 instead
// of 160 µs for its last step, on 16 cores).
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
	s, piece, ok := f.finishing.piece()
	if !ok {
		return false
	}
	f.runPiece(s, piece, true)
	if s.left--; s.left == 0 {
		f.done(s)
	}
	return true
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
	if f.clock != nil && s.Err == nil {
		f.clock.finished(&s.times, f.workers)
	}
	f.finishing.remove(s)
	f.giveBack(s)
	f.wake()
}

// giveBack returns a slot to the pool.
func (f *Flow[B]) giveBack(s *Slot[B]) {
	f.held--
	f.work.Done(s)
	f.on.Slots.put(s)
}

// fillPiece fills a piece of a bucket to be sent, and sends it after the last.
func (f *Flow[B]) fillPiece() bool {
	s, piece, ok := f.filling.piece()
	if !ok {
		return false
	}
	f.runPiece(s, piece, false)
	if s.left--; s.left == 0 {
		f.filling.remove(s) // others are filled while this one is sent
		f.send(s)
	}
	return true
}

// begin takes a slot for the next bucket, if there is one to be had. A batch
// waits for a slot only if it holds none, so that none waits for another.
func (f *Flow[B]) begin() bool {
	if f.allCut || f.filling.n == f.lanes || f.held == f.most || f.on.Down() {
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
		invariant.Check(f.held <= f.most, "%d buckets are under way, the most is %d", f.held, f.most)
	}
	if !f.cut(s) {
		f.allCut = true
		f.giveBack(s)
		f.wake()
		return true
	}
	if s.pieces == 0 { // nothing to fill
		f.send(s)
	} else {
		f.filling.add(s)
	}
	f.wake()
	return true
}

// cut cuts the next bucket. After a panic nothing more is cut.
func (f *Flow[B]) cut(s *Slot[B]) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked, ok = v, false
		}
	}()
	s.begun = time.Now()
	s.pieces, ok = f.work.Cut(s)
	s.next, s.left, s.Err = 0, s.pieces, nil
	s.busy.Store(0)
	return ok
}

// send sends a bucket that is filled. Its error is handled when it is awaited.
func (f *Flow[B]) send(s *Slot[B]) {
	s.sent = time.Now()
	s.used = s.stream
	if f.overlap == Pipelined {
		s.used = f.on.Serial
	}
	f.wake()
	f.mu.Unlock()
	if f.overlap == Pipelined { // awaited in the order in which they are in the stream
		f.on.serial.Lock()
		defer f.on.serial.Unlock()
	}
	s.Err = f.sendOn(s)
	s.gone = time.Now()
	f.lock()
	f.sent.add(s)
	f.wake()
}

// sendOn sends a bucket, without the lock, and notes in its stream where it
// ends. A panic is an error: the CPU answers.
func (f *Flow[B]) sendOn(s *Slot[B]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("flow: sending a bucket panicked: %v", v)
		}
	}()
	if err := f.work.Send(s, s.used); err != nil {
		return err
	}
	return s.used.Record(s.marks[3])
}

// await waits for the oldest bucket. One that failed is marked: its answers
// come from the CPU.
func (f *Flow[B]) await() {
	s := f.sent.slots[0]
	f.awaited = true
	f.mu.Unlock()
	if s.Err == nil {
		s.Err = s.marks[3].Synchronize()
	} else {
		s.used.Synchronize() // its work must be over before the slot is used again
	}
	if s.Err != nil {
		f.on.Fail(s.Err)
	}
	f.lock()
	f.awaited = false
	f.sent.remove(s)
	if s.Err == nil && f.clock != nil {
		f.clock.arrived(&s.times)
	}
	s.pieces = f.work.Ends(s)
	s.next, s.left, s.back = 0, s.pieces, time.Now()
	if invariant.On {
		invariant.Check(s.pieces > 0 && f.finishing.n < MaxLanes, "%d pieces to finish beside %d buckets", s.pieces, f.finishing.n)
	}
	f.finishing.add(s)
	f.wake()
}
