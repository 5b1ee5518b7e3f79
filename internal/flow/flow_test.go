package flow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

var overlaps = []Overlap{Sequential, Pipelined, DoubleBuffered}

// interpreter makes a device that does the work of streams in an order of its
// own.
func interpreter(rng *rand.Rand) device.Device {
	return ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(16<<20), ptx.RaceCheck(false))
}

// Every piece is filled, sent and finished just once, however many workers there
// are, however buckets overlap, and whatever their sizes; and so it is again
// when the flow is used for another batch.
func TestEveryPieceOnce(t *testing.T) {
	rng := seed.Rand(t)
	for _, overlap := range overlaps {
		r := newRig(t, interpreter(rng))
		for workers := 1; workers <= 8; workers++ {
			for _, bucket := range []int{1, 7, 64, 1000} {
				n := []int{0, 1, bucket - 1, bucket, bucket + 1, min(9*bucket+3, 2000)}[rng.IntN(6)]
				j := newJob(r, n, bucket, 1+rng.IntN(bucket), Batch{Workers: workers, Overlap: overlap})
				j.direct = rng.IntN(4) == 0
				inTime(t, j.run)
				j.eachOnce()
				again := newJob(r, 100, bucket, 1+rng.IntN(bucket), j.batch)
				again.flow = j.flow
				inTime(t, again.run)
				again.eachOnce()
				if want := (n + bucket - 1) / bucket; j.bucketsDone != want || j.rested.Load() != 0 {
					t.Errorf("%v: %d buckets are done, want %d; %d rests", j, j.bucketsDone, want, j.rested.Load())
				}
				r.allFree(j.String())
			}
		}
		if f := int(r.favored.Load()); f != r.Slots.made {
			t.Errorf("%d slots, %d streams favored", r.Slots.made, f)
		}
		if f := r.failures(); len(f) > 0 {
			t.Error(f)
		}
	}
}

// Pieces that workers take from the end while they wait for the device belong to
// no bucket, and to no other worker.
func TestSparePieces(t *testing.T) {
	rng := seed.Rand(t)
	spared := 0
	for _, overlap := range overlaps {
		for _, workers := range []int{1, 2, 3, 8} {
			r := newRig(t, late{interpreter(rng), time.Millisecond, nil})
			j := newJob(r, 500, 10+rng.IntN(90), 7, Batch{Workers: workers, Overlap: overlap})
			j.spare = 1 + rng.IntN(20)
			j.before = func(step string, _ int) {
				if step == "Answer" {
					time.Sleep(100 * time.Microsecond)
				}
			}
			inTime(t, j.run)
			j.eachOnce()
			r.allFree(j.String())
			spared += int(j.answered.Load())
			if workers == 1 && j.answered.Load() > 0 {
				t.Errorf("%v: %d answered beside, by a worker that has to wait", j, j.answered.Load())
			}
		}
	}
	if spared == 0 {
		t.Error("no worker has helped out")
	}
}

// breakable are the operations of a device that a flow calls.
var breakable = []faulty.Op{
	faulty.NewStream, faulty.NewEvent, faulty.HostAlloc, faulty.Alloc,
	faulty.CopyIn, faulty.CopyDevice, faulty.CopyOut, faulty.Record, faulty.Synchronize,
}

// Whichever operation fails, every number is finished just once: those of a
// bucket that failed with the bucket marked, those that were not cut by Rest. The
// failure is told.
func TestEveryFault(t *testing.T) {
	rng := seed.Rand(t)
	for _, op := range breakable {
		for _, lose := range []bool{false, true} {
			for _, stays := range []bool{false, true} {
				for _, overlap := range overlaps {
					at := 1 + rng.IntN(12)
					if op == faulty.NewStream {
						at = 2 + rng.IntN(2) // the first is that of all
					}
					failAt(t, rng, faulty.Plan{Op: op, At: at, Lose: lose}, overlap, stays)
				}
			}
		}
	}
}

func failAt(t *testing.T, rng *rand.Rand, p faulty.Plan, overlap Overlap, stays bool) {
	t.Helper()
	d := faulty.New(interpreter(rng), p)
	r := newRig(t, d)
	r.stays = stays
	j := newJob(r, 300, 20, 8, Batch{Workers: 1 + rng.IntN(4), Overlap: overlap, Lanes: rng.IntN(6)})
	what := fmt.Sprintf("%v, %+v", j, p)
	inTime(t, j.run)
	j.eachOnce()
	r.allFree(what)
	happened := d.Count(p.Op) >= p.At
	if told := len(r.failures()) > 0; told != happened {
		t.Errorf("%s: failed %v, told %v: %v", what, happened, told, r.failures())
	}
	marked := slices.IndexFunc(j.marked, func(err error) bool { return err != nil })
	if marked >= 0 && !errors.Is(j.marked[marked], device.ErrLaunchFailed) && !errors.Is(j.marked[marked], device.ErrLost) {
		t.Errorf("%s: a bucket is marked with %v", what, j.marked[marked])
	}
	slotOps := []faulty.Op{faulty.NewStream, faulty.NewEvent, faulty.HostAlloc, faulty.Alloc}
	if inSlot := slices.Contains(slotOps, p.Op); happened && !inSlot && marked < 0 {
		t.Errorf("%s: no bucket is marked", what)
	}
}

// All of a bucket that could not be sent is marked, and nothing of another. What
// was sent of it is waited for, since its slot is used again.
func TestUnsentBucketIsMarked(t *testing.T) {
	rng := seed.Rand(t)
	for _, overlap := range overlaps {
		var waited atomic.Int32
		r := newRig(t, late{interpreter(rng), 0, &waited})
		r.stays = true
		j := newJob(r, 200, 20, 6, Batch{Workers: 3, Overlap: overlap})
		j.failing = func(lo int) error {
			if lo == 60 {
				return errUnsent
			}
			return nil
		}
		inTime(t, j.run)
		j.onlyMarked(60, 80, errUnsent)
		if f := r.failures(); len(f) != 1 || f[0] != errUnsent || waited.Load() != 1 {
			t.Errorf("%v: told %v, waited for %d streams", j, f, waited.Load())
		}
	}
}

var errUnsent = errors.New("not sent")

// And so it is with a bucket that failed on the device.
func TestFailedBucketIsMarked(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig(t, faulty.New(interpreter(rng), faulty.Plan{Op: faulty.Synchronize, At: 4})) // the fourth bucket
	r.stays = true
	j := newJob(r, 200, 20, 6, Batch{Workers: 3, Overlap: Sequential})
	inTime(t, j.run)
	j.onlyMarked(60, 80, device.ErrLaunchFailed)
}

// onlyMarked fails unless just numbers [lo, hi) are marked with an error.
func (j *job) onlyMarked(lo, hi int, want error) {
	j.t.Helper()
	j.eachOnce()
	j.on.allFree(j.String())
	for i, err := range j.marked {
		if in := i >= lo && i < hi; in && !errors.Is(err, want) || !in && err != nil {
			j.t.Fatalf("%v: %d is marked with %v", j, i, err)
		}
	}
}

// A device that is down from the start is not used, nor is a pool that is
// closed: all is Rest's.
func TestRestWithoutDevice(t *testing.T) {
	rng := seed.Rand(t)
	for _, workers := range []int{1, 4} {
		down := newRig(t, interpreter(rng))
		down.Fail(errors.New("down"))
		closed := newRig(t, interpreter(rng))
		closed.Slots.Close()
		for _, r := range []*rig{down, closed} {
			j := newJob(r, 100, 10, 3, Batch{Workers: workers, Overlap: DoubleBuffered})
			inTime(t, j.run)
			j.eachOnce()
			if j.rested.Load() != 1 || j.bucketsDone != 0 || r.Slots.made != 0 && r == down {
				t.Errorf("%v: %d rests, %d buckets", j, j.rested.Load(), j.bucketsDone)
			}
		}
	}
}

// A panic in a part of the work reaches the caller and leaves every slot free:
// the next batch runs as if nothing had been.
func TestPanics(t *testing.T) {
	rng := seed.Rand(t)
	for _, step := range []string{"Fill", "Finish", "Cut", "Answer"} {
		for _, overlap := range overlaps {
			for _, workers := range []int{1, 2, 6} {
				panicIn(t, rng, step, Batch{Workers: workers, Overlap: overlap, Lanes: rng.IntN(6)})
			}
		}
	}
}

func panicIn(t *testing.T, rng *rand.Rand, step string, b Batch) {
	t.Helper()
	r := newRig(t, late{interpreter(rng), 200 * time.Microsecond, nil})
	j := newJob(r, 400, 20, 7, b)
	j.spare, j.garbled = 3, step == "Fill"
	var calls atomic.Int32
	at := int32(1 + rng.IntN(8))
	j.before = func(s string, _ int) {
		if s == step && calls.Add(1) == at {
			panic(step)
		}
	}
	if v := recovered(t, j); v != step && calls.Load() >= at {
		t.Errorf("%v: a panic in %s gives %v", j, step, v)
	}
	r.allFree(j.String())
	next := newJob(r, 100, 20, 7, j.batch)
	next.flow = j.flow
	inTime(t, next.run)
	next.eachOnce()
}

// recovered runs a job that may panic, and returns with what.
func recovered(t *testing.T, j *job) (v any) {
	t.Helper()
	inTime(t, func() {
		defer func() { v = recover() }()
		j.run()
	})
	return v
}

// A panic in Answer reaches the caller also where all other workers are gone by
// then.
func TestLatePanicInAnswer(t *testing.T) {
	r := newRig(t, late{interpreter(seed.Rand(t)), time.Millisecond, nil})
	j := newJob(r, 30, 20, 20, Batch{Workers: 2, Overlap: Sequential})
	j.spare = 5
	over := make(chan struct{})
	j.done = func() {
		if j.next >= j.end && j.underway.Load() == 0 {
			close(over)
		}
	}
	j.before = func(step string, _ int) {
		if step == "Answer" {
			<-over                           // the last bucket, and
			time.Sleep(5 * time.Millisecond) // the worker that waited for it
			panic(step)
		}
	}
	if v := recovered(t, j); v != "Answer" {
		t.Errorf("a panic in Answer gives %v", v)
	}
	r.allFree(j.String())
}

// Several panics are one to the caller.
func TestEveryPiecePanics(t *testing.T) {
	rng := seed.Rand(t)
	for _, step := range []string{"Fill", "Finish"} {
		r := newRig(t, interpreter(rng))
		j := newJob(r, 200, 20, 5, Batch{Workers: 4, Overlap: DoubleBuffered})
		j.garbled = true
		j.before = func(s string, lo int) {
			if s == step {
				panic(step)
			}
		}
		if v := recovered(t, j); v != step {
			t.Errorf("%s: %v", step, v)
		}
		r.allFree(step)
	}
}

// Close waits for the buckets that are under way; what was not cut is Rest's.
func TestCloseWaits(t *testing.T) {
	rng := seed.Rand(t)
	for _, overlap := range overlaps {
		synctest.Test(t, func(t *testing.T) { closeWaits(t, interpreter(rng), overlap) })
	}
}

func closeWaits(t *testing.T, d device.Device, overlap Overlap) {
	r := newRig(t, d)
	j := newJob(r, 200, 10, 10, Batch{Workers: 2, Overlap: overlap})
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	j.before = func(step string, _ int) {
		if step == "Finish" {
			once.Do(func() { close(reached) })
			<-goOn
		}
	}
	ran, closed := make(chan struct{}), make(chan struct{})
	go func() { j.run(); close(ran) }()
	<-reached
	go func() { r.Slots.Close(); close(closed) }()
	<-r.Slots.closed
	synctest.Wait()
	select {
	case <-closed:
		t.Errorf("%v: closed while a bucket is under way", overlap)
	default:
	}
	close(goOn)
	<-ran
	<-closed
	j.eachOnce()
	if len(r.Slots.free) != 0 || j.underway.Load() != 0 {
		t.Errorf("%v: %d slots are to be had in a pool that is closed", overlap, len(r.Slots.free))
	}
}

// Flows that share a pool get all of their numbers done, with no more slots than
// there may be, though they would have more buckets under way.
func TestFlowsShareAPool(t *testing.T) {
	rng := seed.Rand(t)
	for _, closing := range []bool{false, true} {
		r := newRig(t, interpreter(rng))
		var wg sync.WaitGroup
		jobs := make([]*job, 6)
		for i := range jobs {
			jobs[i] = newJob(r, 300+i, 1+rng.IntN(20), 4, Batch{Workers: 1 + rng.IntN(3), Overlap: overlaps[rng.IntN(3)]})
			jobs[i].spare = rng.IntN(3)
			wg.Go(jobs[i].run)
		}
		inTime(t, func() {
			if closing {
				r.Slots.Close()
			}
			wg.Wait()
		})
		for _, j := range jobs {
			j.eachOnce()
		}
		if !closing {
			r.allFree("six flows")
		}
		if f := int(r.favored.Load()); f > MaxSlots {
			t.Errorf("%d slots", f)
		}
	}
}

// A slot grows with what batches ask of it, and is used again.
func TestSlotsGrow(t *testing.T) {
	rng := seed.Rand(t)
	d := faulty.New(interpreter(rng), faulty.Plan{})
	r := newRig(t, d)
	for _, bucket := range []int{10, 1000, 10, 500} {
		j := newJob(r, 3*bucket, bucket, bucket, Batch{Workers: 1, Overlap: Sequential})
		inTime(t, j.run)
		j.eachOnce()
	}
	if r.Slots.made != 1 || d.Count(faulty.Alloc) != 4 || d.Count(faulty.HostAlloc) != 4 {
		t.Errorf("%d slots, %d and %d allocations: want one slot that has grown once", r.Slots.made, d.Count(faulty.Alloc), d.Count(faulty.HostAlloc))
	}
	live := d.Live() // streams, events, and two buffers on either side
	if want := 2 + 4 + 4; live != want {
		t.Errorf("%d things are on the device, want %d", live, want)
	}
}

// A clock adds up what buckets take, over all batches; it counts those that came
// back, and none of the steps takes longer than all of them.
func TestClock(t *testing.T) {
	rng := seed.Rand(t)
	for _, overlap := range overlaps {
		clock := new(Clock)
		if got, err := clock.Times(); got != (Times{}) || err != nil {
			t.Errorf("a clock that has not run: %+v, %v", got, err)
		}
		r := newRig(t, interpreter(rng))
		numbers, buckets := 0, 0
		for _, workers := range []int{1, 3} {
			j := newJob(r, 130, 20, 6, Batch{Workers: workers, Overlap: overlap, Clock: clock})
			inTime(t, j.run)
			j.eachOnce()
			numbers, buckets = numbers+j.n, buckets+j.bucketsDone
		}
		if clock.buckets != buckets || clock.sum.Queries != numbers {
			t.Errorf("%v: %d numbers in %d buckets, want %d in %d", overlap, clock.sum.Queries, clock.buckets, numbers, buckets)
		}
		plain := newJob(r, 50, 20, 6, Batch{Workers: 2, Overlap: overlap})
		if plain.run(); clock.buckets != buckets {
			t.Errorf("%v: a batch without a clock is timed", overlap)
		}
		got, err := clock.Times()
		if err != nil || got.Queries != numbers/buckets {
			t.Errorf("%v: %+v, %v", overlap, got, err)
		}
		checkTimes(t, got)
	}
}

// checkTimes compares times with each other: no test asserts a time.
func checkTimes(t *testing.T, got Times) {
	t.Helper()
	const rounding = time.Microsecond
	if min(got.Fill, got.In, got.Search, got.Out, got.Finish, got.Send, got.Busy) < 0 || got.Latency <= 0 {
		t.Errorf("a time below nothing: %+v", got)
	}
	if got.In+got.Search+got.Out > got.Latency+rounding || got.Fill+got.Send+got.Finish > got.Latency+rounding {
		t.Errorf("parts are more than all: %+v", got)
	}
	if got.GPU() != max(got.In, got.Search, got.Out) {
		t.Errorf("%v is not the longest of %+v", got.GPU(), got)
	}
}

// A clock says when times could not be taken; the numbers are right all the
// same.
func TestClockFails(t *testing.T) {
	rng := seed.Rand(t)
	clock := new(Clock)
	r := newRig(t, faulty.New(interpreter(rng), faulty.Plan{Op: faulty.Synchronize, At: 2})) // the first waits for the bucket
	j := newJob(r, 10, 20, 6, Batch{Workers: 1, Overlap: Sequential, Clock: clock})
	inTime(t, j.run)
	j.eachOnce()
	if _, err := clock.Times(); !errors.Is(err, device.ErrLaunchFailed) {
		t.Errorf("the clock says %v", err)
	}
}

// Overlaps have names, and more of it has more under way, up to the most.
func TestOverlaps(t *testing.T) {
	for i, o := range overlaps {
		if o.String() == "" || i > 0 && o.Flight() <= overlaps[i-1].Flight() || o.Flight() > MaxFlight {
			t.Errorf("%d: %v, %d under way", i, o, o.Flight())
		}
	}
	if Sequential.Flight() != 1 || DoubleBuffered.Flight() != MaxFlight {
		t.Errorf("%d and %d under way", Sequential.Flight(), DoubleBuffered.Flight())
	}
}
