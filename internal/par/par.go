// Package par runs numbered pieces of work on several goroutines. It is the
// only place in Pando that starts goroutines for CPU work: builds, sorts and
// query batches all go through it.
package par

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Task is work cut into pieces. Do is called once for each piece, from
// several goroutines at a time.
type Task interface {
	Do(piece int)
}

// Func adapts a function to a Task.
type Func func(piece int)

// Do calls f.
func (f Func) Do(piece int) { f(piece) }

// Workers returns the number of goroutines that a request for at most n means:
// n itself, but no more than can be of use, or one per core if n is 0 or less.
func Workers(n int) int {
	cores := runtime.GOMAXPROCS(0)
	if n <= 0 {
		return cores
	}
	return min(n, max(mostWorkers, 2*cores))
}

// mostWorkers is the number of goroutines that a small machine may be asked
// for: with tens of thousands, those that share a GPU's buckets do nothing but
// wait for each other.
const mostWorkers = 64

// Run calls t.Do for every piece in [0, pieces) on at most workers goroutines,
// including the caller's, and returns when all are done. Pieces are handed out
// in order, to whichever goroutine is free. A panic in a piece stops the
// handing out and is raised again in the caller; so is a fault, such as that of a
// mapped file that was cut short, where debug.SetPanicOnFault makes it a panic
// there. Run allocates nothing in steady state if t holds a pointer.
func Run(workers, pieces int, t Task) {
	workers = min(workers, pieces)
	if workers <= 1 {
		for i := range pieces {
			t.Do(i)
		}
		return
	}
	c := crews.Get().(*crew)
	c.task, c.pieces = t, int64(pieces)
	c.faults = debug.SetPanicOnFault(false)
	debug.SetPanicOnFault(c.faults)
	c.next.Store(0)
	c.wg.Add(workers - 1)
	for range workers - 1 {
		go c.helper() // a stored func value: no closure is allocated
	}
	c.work()
	c.wg.Wait()
	failed := c.failed.Swap(nil)
	c.task = nil
	crews.Put(c)
	if failed != nil {
		panic(failed.value)
	}
}

// crew is the state of one Run, kept for reuse.
type crew struct {
	task   Task
	pieces int64
	next   atomic.Int64
	wg     sync.WaitGroup
	failed atomic.Pointer[failure]
	faults bool // the caller's setting of SetPanicOnFault
	helper func()
}

type failure struct{ value any }

var crews = sync.Pool{New: func() any {
	c := new(crew)
	c.helper = func() {
		defer c.wg.Done()
		debug.SetPanicOnFault(c.faults) // the goroutine ends with this
		c.work()
	}
	return c
}}

func (c *crew) work() {
	defer func() {
		if v := recover(); v != nil {
			c.failed.CompareAndSwap(nil, &failure{v})
			c.next.Store(c.pieces)
		}
	}()
	for {
		i := c.next.Add(1) - 1
		if i >= c.pieces {
			return
		}
		c.task.Do(int(i))
	}
}
