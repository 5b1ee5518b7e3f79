package stalls

import (
	"fmt"
	"math/bits"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
)

// One goroutine does an operation, and a second one calls Set or Get meanwhile
// and times each call: nothing else runs, no collection either. The second one
// calls only while the operation is under way; the preparation of the next one
// is not waited for. A call that began beside the operation counts to its end.

// waitTimes is how long calls took.
type waitTimes struct {
	longest     time.Duration
	count       int
	buckets     [64 * bucketsPerPower]int
	operation   time.Duration // the longest operation beside them
	operations  int
	collections int
}

// bucketsPerPower is how finely times between a power of two and the next are
// told apart.
const bucketsPerPower = 16

// note counts a call.
func (t *waitTimes) note(d time.Duration) {
	t.longest, t.count = max(t.longest, d), t.count+1
	t.buckets[bucketOf(d)]++
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, bucketsPerPower))
	shift := bits.Len64(n) - 5 // the upper five bits, the first of them set
	return shift*bucketsPerPower + int(n>>shift) - bucketsPerPower
}

// endOf returns the time below which a bucket's calls were.
func endOf(bucket int) time.Duration {
	return time.Duration(bucket%bucketsPerPower+bucketsPerPower+1) << (bucket / bucketsPerPower)
}

func (t *waitTimes) add(o *waitTimes) {
	t.longest, t.count = max(t.longest, o.longest), t.count+o.count
	for i, n := range o.buckets {
		t.buckets[i] += n
	}
	t.operation, t.operations, t.collections = max(t.operation, o.operation), t.operations+o.operations, t.collections+o.collections
}

// percentile returns the time that all but 1-p of the calls stayed below, to
// one part in bucketsPerPower.
func (t *waitTimes) percentile(p float64) time.Duration {
	left := t.count - int(p*float64(t.count))
	for i := len(t.buckets) - 1; i >= 0; i-- {
		if left -= t.buckets[i]; left <= 0 && t.buckets[i] > 0 {
			return min(endOf(i), t.longest)
		}
	}
	return 0
}

// The states of a measurement.
const (
	waitIdle  = iota // nothing is timed
	waitTimed        // the operation is under way
	waitOver         // there will be no further one
)

// waiting is a tree whose calls are timed.
type waiting[K pando.Key] struct {
	*waitKeys[K]
	threads int
	path    string // of files that Save writes

	tree  *pando.Tree[K, uint64]
	state atomic.Int32
	busy  atomic.Bool // calls are made
	wrong error       // of the calls
}

// measure times one kind of call beside an operation, for about as long as is
// said; preparations take up to three times that, too.
func (w *waiting[K]) measure(b *beside, call string, long time.Duration) (*waitTimes, error) {
	if err := w.load(b); err != nil {
		return nil, err
	}
	defer func() { w.tree.Close() }()
	runtime.GC()
	w.wrong = nil
	w.state.Store(waitIdle)
	t, done := &waitTimes{}, make(chan struct{})
	go func() { defer close(done); w.calls(b, call, t) }()
	seen, err := &waitTimes{}, error(nil)
	for begun, on := time.Now(), time.Duration(0); err == nil && on < long && time.Since(begun) < 4*long; {
		var took time.Duration
		took, err = w.phase(b, seen)
		on += took
	}
	w.state.Store(waitOver)
	<-done
	if err == nil {
		err = w.wrong
	}
	if b.after != nil && err == nil {
		err = b.after()
	}
	seen.add(t)
	return seen, err
}

// load makes the tree that an operation begins with.
func (w *waiting[K]) load(b *beside) (err error) {
	keys, vals := w.keys, w.vals
	if b.empty {
		keys, vals = nil, nil
	}
	w.tree, err = pando.TreeOf(keys, vals, pando.On(pando.CPU), pando.Workers(w.threads))
	return err
}

// phase does an operation several times while calls are timed, and returns how
// long they were.
func (w *waiting[K]) phase(b *beside, t *waitTimes) (on time.Duration, err error) {
	if b.prepare != nil {
		if err := b.prepare(); err != nil {
			return 0, err
		}
	}
	if heapBytes() > mostWaste {
		runtime.GC()
	}
	before := collections()
	w.state.Store(waitTimed)
	for !w.busy.Load() {
		runtime.Gosched()
	}
	begun := time.Now()
	for range max(b.times, 1) {
		start := time.Now()
		if err = b.do(); err != nil {
			break
		}
		t.operation, t.operations = max(t.operation, time.Since(start)), t.operations+1
		if b.pause > 0 {
			time.Sleep(b.pause)
		}
	}
	w.state.Store(waitIdle)
	on = time.Since(begun)
	for w.busy.Load() { // the last call is under way
		runtime.Gosched()
	}
	t.collections += collections() - before
	return on, err
}

// mostWaste is the bytes of garbage from which it is collected between two
// phases: the collector is off.
const mostWaste = 2 << 30

func heapBytes() uint64 { return metric("/memory/classes/heap/objects:bytes") }

func collections() int { return int(metric("/gc/cycles/total:gc-cycles")) }

func metric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// calls makes calls and times them, whenever it is told to.
func (w *waiting[K]) calls(b *beside, call string, t *waitTimes) {
	do := map[string]func(*beside, *waitTimes){timedClock: w.clock, timedSet: w.sets, timedGet: w.gets}[call]
	for {
		switch w.state.Load() {
		case waitTimed:
			w.busy.Store(true)
			do(b, t)
			w.busy.Store(false)
		case waitOver:
			return
		default:
			runtime.Gosched()
		}
	}
}

// clock times what the machine does by itself: the gaps between two looks at
// the clock.
func (w *waiting[K]) clock(_ *beside, t *waitTimes) {
	for last := time.Now(); w.state.Load() == waitTimed; {
		now := time.Now()
		t.note(now.Sub(last))
		last = now
	}
}

// sets times Set of keys that are there and of keys that are not, in turn.
func (w *waiting[K]) sets(_ *beside, t *waitTimes) {
	for w.state.Load() == waitTimed {
		key := w.mine[w.at]
		w.at = (w.at + 1) % len(w.mine)
		val := w.value(key)
		begun := time.Now()
		err := w.tree.Set(key, val)
		t.note(time.Since(begun))
		if err != nil {
			w.wrong = err
			return
		}
	}
}

// gets times Get of the same keys. Those of the upper half that were there from
// the start are deleted by few operations.
func (w *waiting[K]) gets(b *beside, t *waitTimes) {
	middle := w.keys[len(w.keys)/2]
	for w.state.Load() == waitTimed {
		at := w.at
		key := w.mine[at]
		w.at = (w.at + 1) % len(w.mine)
		begun := time.Now()
		val, ok := w.tree.Get(key)
		t.note(time.Since(begun))
		if ok && !b.changes && val != w.value(key) || !ok && at%2 == 0 && key >= middle && !b.empty && !b.ends {
			w.wrong = fmt.Errorf("key %v: %d, %v", key, val, ok)
			return
		}
	}
}
