package pando

import (
	"runtime"
	"sync"
	"time"
)

// Batcher gathers single calls of Get from many goroutines into batches, so
// that a server, too, can use what only batches can: a GPU, or all the memory
// accesses that a core has room for. While one batch is being answered, calls
// gather for the next, which goes off when that one is through, or is full, or
// has waited as long as it may. A call that finds nothing under way does not
// wait at all.
//
// What it costs is that goroutines wait for each other, a microsecond or two.
// On a CPU alone, Get from many goroutines is faster.
type Batcher[K Key, V any] struct {
	ix   *Frozen[K, V]
	wait time.Duration
	size int

	mu     sync.Mutex
	open   *round[K, V] // takes keys; nil when there is none
	asking int          // rounds being answered
	spare  sync.Pool    // *round[K, V]
	closed bool
	busy   sync.WaitGroup
}

// round is one batch, and those who wait for it.
type round[K Key, V any] struct {
	keys  []K
	vals  []V
	found []bool
	turn  chan struct{} // closed when the round is full, or its turn has come
	going bool          // it is
	done  chan struct{} // closed when the answers are there
	users int           // who have not read their answer yet
	panic any
}

// The defaults of a Batcher.
const (
	DefaultWait  = 200 * time.Microsecond
	DefaultBatch = 16 << 10
)

// Batcher makes a Batcher over the index. A call of its Get waits at most wait
// for others to join, or until there are size of them; 0 stands for
// DefaultWait and DefaultBatch. The index must be open as long as it is used.
func (f *Frozen[K, V]) Batcher(wait time.Duration, size int) *Batcher[K, V] {
	if wait < 0 || size < 0 {
		panic("pando: Batcher: neither the wait nor the size can be below 0")
	}
	if wait == 0 {
		wait = DefaultWait
	}
	if size == 0 {
		size = DefaultBatch
	}
	f.open()
	return &Batcher[K, V]{ix: f, wait: wait, size: size}
}

// Get gives the value of key, and whether there is one, as Frozen.Get does.
// After Close it panics.
func (b *Batcher[K, V]) Get(key K) (V, bool) {
	r, i, first := b.join(key)
	if first {
		b.lead(r)
	} else {
		<-r.done
	}
	return b.take(r, i)
}

// join adds a key to the open round, and tells whether it is the first of it.
func (b *Batcher[K, V]) join(key K) (r *round[K, V], i int, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		panic("pando: Batcher used after Close")
	}
	if b.open == nil {
		b.open, first = b.fresh(), true
		b.busy.Add(1)
	}
	r, i = b.open, len(b.open.keys)
	r.keys = append(r.keys, key)
	if len(r.keys) == b.size {
		b.open = nil
	}
	if b.open == nil || b.asking == 0 {
		r.start()
	}
	return r, i, first
}

// start lets a round go off. The Batcher is locked.
func (r *round[K, V]) start() {
	if !r.going {
		r.going = true
		close(r.turn)
	}
}

// fresh gives an empty round.
func (b *Batcher[K, V]) fresh() *round[K, V] {
	r, _ := b.spare.Get().(*round[K, V])
	if r == nil {
		r = new(round[K, V])
	}
	r.keys, r.panic, r.going = r.keys[:0], nil, false
	r.turn, r.done = make(chan struct{}), make(chan struct{})
	return r
}

// lead is what the first of a round does for all: it waits for the others,
// asks, and tells them.
func (b *Batcher[K, V]) lead(r *round[K, V]) {
	defer b.busy.Done()
	timer := time.NewTimer(b.wait)
	select {
	case <-r.turn:
	case <-timer.C:
	}
	timer.Stop()
	runtime.Gosched() // those who are about to ask may join
	b.shut(r)
	b.answer(r)
	close(r.done)
	b.next()
}

// shut lets nobody else join a round.
func (b *Batcher[K, V]) shut(r *round[K, V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == r {
		b.open = nil
	}
	b.asking++
}

// next lets the round that has gathered meanwhile go off.
func (b *Batcher[K, V]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking--
	if b.open != nil {
		b.open.start()
	}
}

// answer asks the index. A panic is handed to everyone who waits.
func (b *Batcher[K, V]) answer(r *round[K, V]) {
	defer func() { r.panic = recover() }()
	n := len(r.keys)
	r.users = n
	if cap(r.vals) < n {
		r.vals, r.found = make([]V, cap(r.keys)), make([]bool, cap(r.keys))
	}
	b.ix.GetBatch(r.keys, r.vals[:n], r.found[:n])
}

// take reads an answer. The last one to do so keeps the round for later.
func (b *Batcher[K, V]) take(r *round[K, V], i int) (V, bool) {
	if r.panic != nil {
		panic(r.panic)
	}
	v, found := r.vals[i], r.found[i]
	b.mu.Lock()
	r.users--
	last := r.users == 0
	b.mu.Unlock()
	if last {
		clear(r.vals[:len(r.keys)]) // nothing is kept of them
		clear(r.keys)
		b.spare.Put(r)
	}
	return v, found
}

// Close waits for calls under way. Later ones panic. A second Close does
// nothing.
func (b *Batcher[K, V]) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.busy.Wait()
	return nil
}
