package index

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Batcher is a pando.Batcher without its types.
type Batcher struct {
	ask  func(keys order.Keys, vals Column, found []bool) (hits int)
	get  func(key order.Probe) (Value, bool)
	Key  order.Type
	val  *ValueType
	wait time.Duration
	size int

	open   atomic.Pointer[round] // takes keys
	asking atomic.Int64          // rounds being answered
	calls  atomic.Int64          // under way
	rooms  par.Pool[room]
	closed atomic.Bool
}

// round is one batch, and the calls that wait for it.
type round struct {
	joined atomic.Int64  // calls that have a place, or wanted one
	ready  atomic.Int64  // of them, those whose key is there
	turn   chan struct{} // gets one value when the round may go off
	done   chan struct{} // closed when the answers are there
	left   atomic.Int64  // calls that have not read their answer yet
	*room
	failed bool // there are no answers: each call asks for itself
}

// room is for the keys and the answers of a round, kept for a later one.
type room struct {
	keys  order.Keys
	vals  Column
	found []bool
}

// mostBatch is the most calls that a Batcher has room for at a time.
const mostBatch = 1 << 20

// Start makes the batcher ready: ask is GetBatch of an index, and get its Get.
func (b *Batcher) Start(ask func(order.Keys, Column, []bool) int, get func(order.Probe) (Value, bool), key order.Type, val *ValueType, wait time.Duration, size int) {
	if wait < 0 || size < 0 {
		panic("pando: Batcher: neither the wait nor the size can be below 0")
	}
	b.ask, b.get, b.Key, b.val, b.wait, b.size, b.rooms = ask, get, key, val, wait, min(size, mostBatch), par.NewPool[room]()
	b.open.Store(b.fresh())
}

// fresh returns an empty round. Only its room has been used before: a call that
// comes late must find the round itself as it was shut.
func (b *Batcher) fresh() *round {
	space := par.Get(b.rooms)
	if space.keys.Len() == 0 {
		*space = room{MakeKeys(b.Key, b.size), b.val.Zeros(b.size), make([]bool, b.size)}
	}
	return &round{turn: make(chan struct{}, 1), done: make(chan struct{}), room: space}
}

// One asks for one key. Its name is no other's: the linker keeps a method that has the name of
// one that some interface asks for.
func (b *Batcher) One(key order.Probe) (Value, bool) {
	b.calls.Add(1)
	defer b.calls.Add(-1)
	if b.closed.Load() {
		panic("pando: Batcher used after Close")
	}
	r, i := b.join(key)
	if i == 0 {
		b.lead(r)
	} else {
		<-r.done
	}
	x, found, failed := b.val.Copy(r.vals, i), r.found[i], r.failed
	if r.left.Add(-1) == 0 {
		r.keys.Clear() // nothing is kept of them
		b.val.Clear(r.vals)
		par.Put(b.rooms, r.room)
	}
	if failed {
		return b.get(key)
	}
	return x, found
}

// join returns a key its place in the round that is open. The call that takes
// the last place lets it go off.
func (b *Batcher) join(key order.Probe) (*round, int) {
	for {
		r := b.open.Load()
		i := int(r.joined.Add(1) - 1)
		if i < b.size {
			r.keys.SetProbe(i, key)
			r.ready.Add(1)
			if i == b.size-1 {
				b.open.CompareAndSwap(r, b.fresh())
				r.start()
			}
			return r, i
		}
		runtime.Gosched() // full, or shut: the next one is about to be there
	}
}

// start lets a round go off, unless it has already.
func (r *round) start() {
	select {
	case r.turn <- struct{}{}:
	default:
	}
}

// lead is run by the first call of a round for all of them: it waits for their
// turn, asks, and tells them.
func (b *Batcher) lead(r *round) {
	if b.asking.Add(1) > 1 {
		timer := time.NewTimer(b.wait)
		select {
		case <-r.turn:
		case <-timer.C:
		}
		timer.Stop()
	}
	runtime.Gosched() // calls that are about to ask may join
	n := b.shut(r)
	b.answer(r, n)
	b.asking.Add(-1)
	b.open.Load().start()
	close(r.done)
}

// shut closes a round to further calls, and returns the number of its calls,
// when all their keys are there.
func (b *Batcher) shut(r *round) int {
	n := b.size
	if b.open.Load() == r {
		next := b.fresh()
		n = int(min(r.joined.Swap(int64(b.size)), int64(b.size)))
		b.open.CompareAndSwap(r, next)
	}
	for int(r.ready.Load()) < n {
		runtime.Gosched()
	}
	r.left.Store(int64(n))
	return n
}

// answer asks the  If it panics, over a value that cannot be decoded, say,
// each call of the round asks again for itself, so that only the one whose key
// it was learns of it.
func (b *Batcher) answer(r *round, n int) {
	defer func() { r.failed = recover() != nil }()
	b.ask(r.keys.Slice(0, n), r.vals, r.found)
}

// Close waits for calls under way.
func (b *Batcher) Close() error {
	b.closed.Store(true)
	for b.calls.Load() > 0 {
		time.Sleep(10 * time.Microsecond)
	}
	return nil
}
