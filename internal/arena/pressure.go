package arena

import (
	"errors"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"weak"
)

// The garbage collector does not see memory off its heap: a program that
// forgets block after block gives it no reason to run. So this file counts
// that memory as if it were on the heap, and collects by Go's own rules:
//
//   - GOGC: when blocks have grown by GOGC percent of all that was live after
//     the last collection, on the heap and off it. That runs in the background;
//     a goroutine that takes a block when they have grown by twice as much waits for it.
//   - The memory limit (debug.SetMemoryLimit): before a block is taken with
//     which Go's memory and blocks together would be above it.
//   - Addresses, where the system limits them (ulimit -v): before a block is
//     taken that leaves too few for Go's heap to grow. Released blocks count
//     here, since they keep their addresses until they are collected.
//   - Failure: when the system refuses a block.
//
// The live memory is looked up after every collection, also those of Go itself.
// Where blocks are Go's own memory (heap.go), the collector sees them by
// itself.

const (
	// leastGrowth is the growth from which on a collection pays: as for the heap,
	// with a GOGC of 100.
	leastGrowth = 4 << 20

	// leastShare is the share of live memory by which blocks must have grown
	// before a limit makes the collector run again. It keeps a program that
	// really needs as much as its limit from doing nothing but collect.
	leastShare = 8

	// mostCollections is how often the collector runs for a block that the system
	// refuses: objects in a sync.Pool are found unused by the third only.
	mostCollections = 3
)

// state describes all blocks since the last collection.
var state struct {
	sync.Mutex
	blocks map[*mapping]known
	epoch  int   // changes when a collection begins
	live   int64 // bytes of blocks that the last collection has found in use; less if they were released since
	held   int64 // addresses of blocks after the last collection
	heap   int64 // live bytes of Go's heap after it
	hooked bool  // the next collection is noticed
}

// known is a block as this file knows it. Blocks that were made while a
// collection ran are not said to be live by it: so blocks that are forgotten in
// that time do not put off the next.
type known struct {
	block weak.Pointer[Block]
	born  int // epoch
}

// trigger is the bytes in use above which the collector is to run, wait those
// above which a new block waits for it.
var trigger, wait atomic.Int64

// addresses is the bytes of addresses that all blocks have, released ones and
// files included.
var addresses atomic.Int64

// add makes a block known, so that its memory goes back once nothing refers
// to it.
func add(b *Block) {
	addresses.Add(int64(b.mem.length))
	state.Lock()
	defer state.Unlock()
	if state.blocks == nil {
		state.blocks = map[*mapping]known{}
	}
	state.blocks[b.mem] = known{weak.Make(b), state.epoch}
	if !state.hooked {
		state.hooked = true
		hook()
	}
}

// cycle is an object that nobody refers to: the next collection finds it.
type cycle struct{ _ *cycle }

// hook makes the next collection call noticed.
func hook() { runtime.AddCleanup(new(cycle), noticed, 0) }

// noticed is called after each collection. One that this package has begun is
// looked after there.
func noticed(int) {
	if collecting.TryLock() {
		collected()
		begin()
		collecting.Unlock()
	}
	hook()
}

// begin notes that blocks made from now on are younger than the collection that
// comes next.
func begin() {
	state.Lock()
	state.epoch++
	state.Unlock()
}

// collected unmaps the blocks that a collection has found unused, and notes the
// live memory. collecting is held.
func collected() {
	var unused []*mapping
	live := int64(0)
	state.Lock()
	for m, k := range state.blocks {
		switch {
		case k.block.Value() == nil:
			unused = append(unused, m)
			delete(state.blocks, m)
		case k.born < state.epoch:
			live += max(m.bytes.Load(), 0)
		}
	}
	state.Unlock()
	for _, m := range unused {
		m.unmap()
	}
	state.Lock()
	state.live, state.held, state.heap = live, addresses.Load(), readGo().live
	state.Unlock()
	reckon()
}

// collecting is held by the goroutine that runs the collector, so that it runs
// once for all that ask for it at the same time.
var collecting sync.Mutex

// collect runs the collector and unmaps the blocks it finds, if that is still
// to be done when another collection has ended.
func collect(still func() bool) {
	collecting.Lock()
	defer collecting.Unlock()
	if still() {
		collectNow()
	}
}

// collectBeside does so in the background, unless that is under way.
func collectBeside() {
	if collecting.TryLock() {
		go func() {
			defer collecting.Unlock()
			collectNow()
		}()
	}
}

func collectNow() {
	begin()
	runtime.GC()
	collected()
}

// goMemory is Go's own statistics of its memory.
type goMemory struct {
	percent int64 // GOGC; below 0 for off
	limit   int64 // math.MaxInt64 for none
	live    int64 // of the heap, after the last collection
	total   int64 // all that counts against the limit
}

// samples is room to read it in: nothing is allocated beside a collection.
var samples struct {
	sync.Mutex
	all [5]metrics.Sample
}

func readGo() goMemory {
	samples.Lock()
	defer samples.Unlock()
	s := &samples.all
	s[0].Name, s[1].Name, s[2].Name = "/gc/gogc:percent", "/gc/gomemlimit:bytes", "/gc/heap/live:bytes"
	s[3].Name, s[4].Name = "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes"
	metrics.Read(s[:])
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return goMemory{percent: n(0), limit: n(1), live: n(2), total: n(3) - n(4)}
}

// reckon sets trigger and wait by the present values of GOGC and the limit.
func reckon() {
	g := readGo()
	state.Lock()
	defer state.Unlock()
	state.live = min(state.live, inUse.Load())
	growth := int64(math.MaxInt64 / 4)
	if all := float64(max(state.live+state.heap, leastGrowth)); g.percent >= 0 && !onHeap {
		growth = max(int64(min(all*float64(g.percent)/100, math.MaxInt64/4)), 1)
	}
	wait.Store(state.live + 2*growth)
	if g.limit < math.MaxInt64 && !onHeap {
		growth = min(growth, max(g.limit-g.total-state.live, leastUnder()))
	}
	trigger.Store(state.live + growth)
}

// leastUnder is the growth from which on a limit makes the collector run.
func leastUnder() int64 { return max((state.live+state.heap)/leastShare, leastGrowth) }

// took is told that blocks have grown.
func took() {
	if inUse.Load() > trigger.Load() {
		collectBeside()
	}
}

// prepare collects, if it is time to, before a block is taken: bytes of memory
// and length bytes of addresses.
func prepare(bytes, length int64) {
	reckon()
	late := func() bool { return inUse.Load() > wait.Load() }
	if late() {
		collect(late)
	} else {
		took()
	}
	if tight := func() bool { return crowded(bytes, length) }; tight() {
		collect(tight)
	}
}

// crowded reports whether a block would be above the memory limit or leave too
// few addresses, and blocks have grown since the last collection, so that
// another may find some.
func crowded(bytes, length int64) bool {
	if onHeap {
		return false
	}
	g := readGo()
	state.Lock()
	live, held, least := state.live, state.held, leastUnder()
	state.Unlock()
	if used := inUse.Load(); used-live >= least && bytes > g.limit-g.total-used {
		return true
	}
	if addresses.Load()-held < max(held/leastShare, leastGrowth) {
		return false
	}
	growing.Lock()
	defer growing.Unlock()
	return leave(length) != nil
}

// orCollect calls take, which maps the given bytes, until the system does not refuse
// it and enough addresses are left, with a collection after each refusal as long as
// there are blocks to be found.
func orCollect(bytes int64, take func() (*mapping, error)) (*mapping, error) {
	m, err := leaving(bytes, take)
	for i := 0; i < mostCollections && errors.Is(err, ErrMemory) && addresses.Load() > 0; i++ {
		collect(func() bool { return true })
		m, err = leaving(bytes, take)
	}
	return m, err
}
