package pando

import (
	"cmp"
	"time"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
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
type Batcher[K Key, V any] struct{ c index.Batcher }

// The defaults of a Batcher.
const (
	DefaultWait  = 200 * time.Microsecond
	DefaultBatch = 16 << 10
)

// Batcher makes a Batcher over the index. A call of its Get waits at most wait
// for a batch before its own, or until there are size of them; 0 stands for
// DefaultWait and DefaultBatch. A size above a million is taken as that: there is
// room for a batch from the start. The index must be open as long as it is used.
func (f *Frozen[K, V]) Batcher(wait time.Duration, size int) *Batcher[K, V] {
	b := new(Batcher[K, V])
	wait, size = limits(wait, size)
	b.c.Start(f.c.GetBatch, f.c.Get, f.c.Key.Type, f.c.Open().ValueType(), wait, size)
	return b
}

// Batcher makes a Batcher over the tree, as Frozen.Batcher does over an index: each
// call returns a value that its key has between the begin and the end of the call.
func (t *Tree[K, V]) Batcher(wait time.Duration, size int) *Batcher[K, V] {
	t.c.Open()
	b := new(Batcher[K, V])
	wait, size = limits(wait, size)
	b.c.Start(t.c.GetBatch, t.c.Get, t.c.Key.Type, t.c.Val, wait, size)
	return b
}

// Get returns the value of key, and reports whether there is one, as Get of the index
// does.
// After Close it panics.
func (b *Batcher[K, V]) Get(key K) (V, bool) {
	x, found := b.c.One(order.Encode(b.c.Key, key))
	return index.ValueAs[V](x), found
}

// Close waits for calls under way. Later ones panic. A second Close does
// nothing.
func (b *Batcher[K, V]) Close() error { return b.c.Close() }

// limits returns the wait and the size of a Batcher.
func limits(wait time.Duration, size int) (time.Duration, int) {
	return cmp.Or(wait, DefaultWait), cmp.Or(size, DefaultBatch)
}
