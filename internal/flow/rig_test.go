package flow

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inTime runs what must not wait forever. The time is far beyond what any
// machine needs; a panic shows where every goroutine stands.
func inTime(t *testing.T, run func()) {
	t.Helper()
	name := t.Name()
	watchdog := time.AfterFunc(2*time.Minute, func() { panic(name + " is stuck") })
	defer watchdog.Stop()
	run()
}

// load is a bucket of numbers.
type load struct {
	lo, hi       int
	cut, sent    bool
	fills, ends  atomic.Int32
	pieces, last int // of filling, of finishing
}

// clear makes a bucket empty.
func (l *load) clear() {
	l.lo, l.hi, l.cut, l.sent, l.pieces, l.last = 0, 0, false, false, 0, 0
	l.fills.Store(0)
	l.ends.Store(0)
}

// rig is a device with all that flows over it have in common.
type rig struct {
	Schedule[load]
	t       testing.TB
	favored atomic.Int32
	stays   bool // failures do not end the use of the device
	mu      sync.Mutex
	failed  []error
}

func newRig(t testing.TB, d device.Device) *rig {
	t.Helper()
	r := &rig{t: t}
	r.Slots.Init(d, MaxSlots, func(device.Stream) { r.favored.Add(1) })
	r.Fail = func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, err)
	}
	r.Down = func() bool { return !r.stays && len(r.failures()) > 0 }
	var err error
	if r.Serial, err = d.NewStream(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failed)
}

// allFree fails unless every slot is back.
func (r *rig) allFree(what string) {
	r.t.Helper()
	if free := len(r.Slots.free); free != r.Slots.made || free > MaxSlots {
		r.t.Errorf("%s: %d of %d slots are free, the most is %d", what, free, r.Slots.made, MaxSlots)
	}
}

// job is a batch of numbers that go to a device and back. It notes what the flow
// does with each, in memory that has no lock: a piece that two workers have at
// once is a race.
type job struct {
	t             testing.TB
	on            *rig
	flow          *Flow[load]
	batch         Batch
	n             int
	bucket, piece int
	spare         int                       // that Spare cuts off at a time; 0 for none
	direct        bool                      // nothing is to be filled
	garbled       bool                      // what comes back is not looked at
	before        func(step string, lo int) // may panic, or wait
	done          func()                    // called when a bucket is
	failing       func(lo int) error        // what Send fails with

	next, end   int
	filled      []int
	ended       []int
	marked      []error // what was wrong with each number's bucket
	cutting     atomic.Bool
	underway    atomic.Int32
	rested      atomic.Int32
	answered    atomic.Int32 // by Answer, for want of other work
	bucketsDone int
}

// newJob makes a job of n numbers.
func newJob(on *rig, n, bucket, piece int, b Batch) *job {
	b.In, b.Out = 4*bucket, 4*bucket
	return &job{
		t: on.t, on: on, flow: new(Flow[load]), batch: b, n: n, bucket: bucket, piece: piece,
		end: n, filled: make([]int, n), ended: make([]int, n), marked: make([]error, n),
		before: func(string, int) {}, done: func() {}, failing: func(int) error { return nil },
	}
}

func (j *job) String() string {
	return fmt.Sprintf("%d numbers, buckets of %d, pieces of %d, %d to spare, %d workers, %v", j.n, j.bucket, j.piece, j.spare, j.batch.Workers, j.batch.Overlap)
}

// run runs the job once.
func (j *job) run() { j.flow.Run(&j.on.Schedule, j, j.batch) }

// code is what a number travels as.
func code(i int) uint32 { return uint32(i)*2654435761 + 1 }

func (j *job) Cut(s *Slot[load]) (pieces int, ok bool) {
	if j.cutting.Swap(true) {
		j.t.Error("two buckets are cut at a time")
	}
	defer j.cutting.Store(false)
	j.before("Cut", j.next)
	b := &s.Bucket
	if b.cut {
		j.t.Errorf("a slot with numbers %d to %d is used again", b.lo, b.hi)
	}
	if j.next >= j.end {
		return 0, false
	}
	if now := int(j.underway.Add(1)); now > max(j.batch.Overlap.Flight(), j.batch.Lanes) {
		j.t.Errorf("%v: %d buckets are under way", j, now)
	}
	if len(s.In) < j.batch.In || len(s.Out) < j.batch.Out {
		j.t.Errorf("%v: a slot of %d and %d bytes", j, len(s.In), len(s.Out))
	}
	b.lo, b.hi, b.cut = j.next, min(j.next+j.bucket, j.end), true
	j.next = b.hi
	s.Queries = b.hi - b.lo
	if j.direct {
		return 0, true
	}
	b.pieces = j.pieces(b)
	return b.pieces, true
}

func (j *job) pieces(b *load) int { return (b.hi - b.lo + j.piece - 1) / j.piece }

// span returns the numbers of a piece.
func (j *job) span(b *load, piece int) (lo, hi int) {
	lo = b.lo + piece*j.piece
	return lo, min(lo+j.piece, b.hi)
}

func (j *job) Fill(s *Slot[load], piece int) {
	b := &s.Bucket
	defer b.fills.Add(1)
	lo, _ := j.span(b, piece)
	j.before("Fill", lo)
	j.fill(s, piece)
}

func (j *job) fill(s *Slot[load], piece int) {
	b := &s.Bucket
	lo, hi := j.span(b, piece)
	codes := arena.As[uint32](s.In)
	for i := lo; i < hi; i++ {
		j.filled[i]++
		codes[i-b.lo] = code(i)
	}
}

func (j *job) Send(s *Slot[load], st device.Stream) error {
	b := &s.Bucket
	if int(b.fills.Load()) != b.pieces || b.sent || !b.cut {
		j.t.Errorf("%v: sent with %d of %d pieces filled, sent before: %v", j, b.fills.Load(), b.pieces, b.sent)
	}
	if serial := st == j.on.Serial; serial != (j.batch.Overlap == Pipelined) {
		j.t.Errorf("%v: a bucket in the stream of all: %v", j, serial)
	}
	b.sent = true
	if j.direct {
		for p := range j.pieces(b) {
			j.fill(s, p)
		}
	}
	bytes := 4 * (b.hi - b.lo)
	return firstOf(
		func() error { return j.failing(b.lo) },
		func() error { return j.flow.Mark(s, st, Sent) },
		func() error { return st.CopyIn(s.DevIn, s.In[:bytes]) },
		func() error { return j.flow.Mark(s, st, CopiedIn) },
		func() error { return st.CopyDevice(s.DevOut, s.DevIn, bytes) },
		func() error { return j.flow.Mark(s, st, Searched) },
		func() error { return st.CopyOut(s.Out[:bytes], s.DevOut) },
	)
}

// firstOf returns the first error.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) Ends(s *Slot[load]) int {
	b := &s.Bucket
	if !b.sent || b.last > 0 {
		j.t.Errorf("%v: a bucket ends that was sent: %v, with %d pieces before", j, b.sent, b.last)
	}
	b.last = j.pieces(b)
	return b.last
}

func (j *job) Finish(s *Slot[load], piece int) {
	b := &s.Bucket
	defer b.ends.Add(1)
	lo, hi := j.span(b, piece)
	j.before("Finish", lo)
	for i := lo; i < hi; i++ {
		j.ended[i]++
		j.marked[i] = s.Err
		if got := arena.As[uint32](s.Out)[i-b.lo]; s.Err == nil && !j.garbled && got != code(i) {
			j.t.Errorf("%v: %d comes back as %d, want %d", j, i, got, code(i))
			return
		}
	}
}

func (j *job) Done(s *Slot[load]) {
	b := &s.Bucket
	if b.cut {
		defer j.done()
		if int(b.ends.Load()) != b.last || b.last == 0 {
			j.t.Errorf("%v: done with %d of %d pieces finished", j, b.ends.Load(), b.last)
		}
		j.underway.Add(-1)
		j.bucketsDone++
	}
	b.clear()
}

func (j *job) Rest() {
	j.rested.Add(1)
	j.answer(j.next, j.end)
	j.next = j.end
}

func (j *job) Spare() (lo, hi int, ok bool) {
	if j.cutting.Load() {
		j.t.Errorf("%v: Spare while a bucket is cut", j)
	}
	if j.spare == 0 || j.end-j.next <= j.spare {
		return 0, 0, false
	}
	hi = j.end
	j.end -= j.spare
	return j.end, hi, true
}

func (j *job) Answer(lo, hi int) {
	j.before("Answer", lo)
	j.answered.Add(int32(hi - lo))
	j.answer(lo, hi)
}

// answer does what the device does.
func (j *job) answer(lo, hi int) {
	for i := lo; i < hi; i++ {
		j.filled[i]++
		j.ended[i]++
	}
}

// eachOnce fails unless every number was filled and finished just once.
func (j *job) eachOnce() {
	j.t.Helper()
	for i := range j.n {
		if j.filled[i] != 1 || j.ended[i] != 1 {
			j.t.Fatalf("%v: %d was filled %d times and finished %d times", j, i, j.filled[i], j.ended[i])
		}
	}
	if u := j.underway.Load(); u != 0 {
		j.t.Errorf("%v: %d buckets are still under way", j, u)
	}
}

// late is a device whose buckets take their time, so that workers have to look
// for something else to do.
type late struct {
	device.Device
	by     time.Duration
	waited *atomic.Int32 // times that a stream was waited for; nil where nobody counts
}

func (d late) NewStream() (device.Stream, error) {
	st, err := d.Device.NewStream()
	return &lateStream{st, d.waited}, err
}

func (d late) NewEvent() (device.Event, error) {
	e, err := d.Device.NewEvent()
	return &lateEvent{e, d.by}, err
}

type lateStream struct {
	device.Stream
	waited *atomic.Int32
}

func (s *lateStream) Synchronize() error {
	if s.waited != nil {
		s.waited.Add(1)
	}
	return s.Stream.Synchronize()
}

func (s *lateStream) Record(e device.Event) error { return s.Stream.Record(e.(*lateEvent).Event) }
func (s *lateStream) Wait(e device.Event) error   { return s.Stream.Wait(e.(*lateEvent).Event) }

type lateEvent struct {
	device.Event
	by time.Duration
}

func (e *lateEvent) Synchronize() error {
	time.Sleep(e.by)
	return e.Event.Synchronize()
}

func (e *lateEvent) Since(earlier device.Event) (float64, error) {
	return e.Event.Since(earlier.(*lateEvent).Event)
}
