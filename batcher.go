package pando

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Batcher gathers single calls of Get from many goroutines into batches, so
// that a server, too, can use resources that only batches can: a GPU, or all
// the memory accesses that a core has room for. While one batch is being
// answered, calls gather for the next, which goes off when that one is through,
// or is full, or has waited as long as it may. A call that finds nothing under
// way does not wait at all.
//
// Its cost is that goroutines wait for each other and are woken, which takes
// longer than a search: where all the work is Get, calls from many goroutines
// are faster without it, see experiment batcher. It is for indexes whose single
// searches are slow, and for callers that wait for other things anyway.
type Batcher[K Key, V any] struct{ c batcherCore }

// batcherCore is a Batcher without its types.
type batcherCore struct {
	ask  func(keys order.Keys, vals index.Column, found []bool) (hits int)
	get  func(key order.Probe) (index.Value, bool)
	key  order.Type
	val  *index.ValueType
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
	vals  index.Column
	found []bool
}

// The defaults of a Batcher.
const (
	DefaultWait  = 200 * time.Microsecond
	DefaultBatch = 16 << 10
)

// mostBatch is the most calls that a Batcher has room for at a time.
const mostBatch = 1 << 20

// Batcher makes a Batcher over the index. A call of its Get waits at most wait
// for a batch before its own, or until there are size of them; 0 stands for
// DefaultWait and DefaultBatch. A size above a million is taken as that: there is
// room for a batch from the start. The index must be open as long as it is used.
func (f *Frozen[K, V]) Batcher(wait time.Duration, size int) *Batcher[K, V] {
	b := new(Batcher[K, V])
	b.c.start(f.c.getBatch, f.c.get, f.c.key.Type, f.c.open().ValueType(), wait, size)
	return b
}

// Batcher makes a Batcher over the tree, as Frozen.Batcher does over an index: each
// call returns a value that its key has between the begin and the end of the call.
func (t *Tree[K, V]) Batcher(wait time.Duration, size int) *Batcher[K, V] {
	t.c.open()
	b := new(Batcher[K, V])
	b.c.start(t.c.getBatch, t.c.get, t.c.key.Type, t.c.val, wait, size)
	return b
}

// Get returns the value of key, and reports whether there is one, as Get of the index
// does.
// After Close it panics.
func (b *Batcher[K, V]) Get(key K) (V, bool) {
	x, found := b.c.one(order.Encode(b.c.key, key))
	return index.ValueAs[V](x), found
}

// Close waits for calls under way. Later ones panic. A second Close does
// nothing.
func (b *Batcher[K, V]) Close() error { return b.c.close() }

func (b *batcherCore) start(ask func(order.Keys, index.Column, []bool) int, get func(order.Probe) (index.Value, bool), key order.Type, val *index.ValueType, wait time.Duration, size int) {
	if wait < 0 || size < 0 {
		panic("pando: Batcher: neither the wait nor the size can be below 0")
	}
	if wait == 0 {
		wait = DefaultWait
	}
	if size == 0 {
		size = DefaultBatch
	}
	b.ask, b.get, b.key, b.val, b.wait, b.size, b.rooms = ask, get, key, val, wait, min(size, mostBatch), par.NewPool[room]()
	b.open.Store(b.fresh())
}

// fresh returns an empty round. Only its room has been used before: a call that
// comes late must find the round itself as it was shut.
func (b *batcherCore) fresh() *round {
	space := b.rooms.Get()
	if space.keys.Len() == 0 {
		*space = room{index.MakeKeys(b.key, b.size), b.val.Zeros(b.size), make([]bool, b.size)}
	}
	return &round{turn: make(chan struct{}, 1), done: make(chan struct{}), room: space}
}

// one asks for one key.
func (b *batcherCore) one(key order.Probe) (index.Value, bool) {
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
		b.rooms.Put(r.room)
	}
	if failed {
		return b.get(key)
	}
	return x, found
}

// join returns a key its place in the round that is open. The call that takes
// the last place lets it go off.
func (b *batcherCore) join(key order.Probe) (*round, int) {
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
func (b *batcherCore) lead(r *round) {
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
func (b *batcherCore) shut(r *round) int {
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

// answer asks the index. If it panics, over a value that cannot be decoded, say,
// each call of the round asks again for itself, so that only the one whose key
// it was learns of it.
func (b *batcherCore) answer(r *round, n int) {
	defer func() { r.failed = recover() != nil }()
	b.ask(r.keys.Slice(0, n), r.vals, r.found)
}

func (b *batcherCore) close() error {
	b.closed.Store(true)
	for b.calls.Load() > 0 {
		time.Sleep(10 * time.Microsecond)
	}
	return nil
}
