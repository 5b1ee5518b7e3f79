package stalls

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// The world is stopped for moments by the garbage collector, by profilers and
// the like, and then no goroutine runs. Before it stands still, every goroutine
// must come to a place where it can be stopped: one in the middle of a long
// copy, or of a routine in assembly, comes there at its end, and all others
// wait for it. Go counts how long that took, "stopping", apart from how long the
// world then stood still.
//
// On a machine with other work that time says little: a thread that has to wait
// for a core cannot be stopped either. So the time that the process's threads
// ran on a core meanwhile is taken, too, and the lesser of both is how long a
// goroutine was in the way.

// stopTime is the longest that stopping the world took.
type stopTime struct {
	wall time.Duration // passed
	busy time.Duration // the part of it, at most, of a goroutine that could not be stopped
	stop int           // number of stops
}

// stopWatch stops the world over and over and notes how long that takes.
type stopWatch struct {
	stopTime
	sample  [1]metrics.Sample
	counts  []uint64 // of the histogram, before the stop
	threads threadClocks
}

func newStopWatch() *stopWatch {
	w := &stopWatch{threads: newThreadClocks()}
	w.sample[0].Name = "/sched/pauses/stopping/other:seconds"
	w.longest()
	return w
}

// longest returns the longest stopping since the last call, as the upper bound
// of its bucket in Go's histogram.
func (w *stopWatch) longest() (most time.Duration) {
	metrics.Read(w.sample[:])
	h := w.sample[0].Value.Float64Histogram()
	if w.counts == nil {
		w.counts = make([]uint64, len(h.Counts))
	}
	for i, n := range h.Counts {
		if n > w.counts[i] {
			bound := h.Buckets[i+1]
			if math.IsInf(bound, 1) {
				bound = h.Buckets[i]
			}
			most = time.Duration(bound * float64(time.Second))
		}
		w.counts[i] = n
	}
	return most
}

// look stops the world once.
func (w *stopWatch) look(into *runtime.MemStats) {
	if w.stop%64 == 0 {
		w.threads.list()
	}
	w.threads.start()
	runtime.ReadMemStats(into) // stops the world
	busy := w.threads.most()
	wall := w.longest()
	w.wall, w.busy, w.stop = max(w.wall, wall), max(w.busy, min(busy, wall)), w.stop+1
}

// stopPause is the time between two stops: short enough that a long copy meets
// one, long enough that the work goes on.
const stopPause = 100 * time.Microsecond

// gcPause is the time between two collections: half of the stops are beside
// one, half are not.
const gcPause = 5 * time.Millisecond

// longestStop stops the world over and over while do runs. Collections run all
// the while, since some copies take longer beside one.
func longestStop(do func() error) (t stopTime, err error) {
	quit := make(chan struct{})
	var started, ended sync.WaitGroup
	each := func(pause time.Duration, stop func()) {
		stop()
		started.Done()
		for {
			select {
			case <-quit:
				return
			case <-time.After(pause):
				stop()
			}
		}
	}
	started.Add(2)
	ended.Go(func() { each(gcPause, runtime.GC) })
	ended.Go(func() {
		runtime.LockOSThread() // the one thread that is not watched
		defer runtime.UnlockOSThread()
		w := newStopWatch()
		each(stopPause, func() { w.look(new(runtime.MemStats)) })
		t = w.stopTime
	})
	started.Wait()
	err = do()
	close(quit)
	ended.Wait()
	return t, err
}
