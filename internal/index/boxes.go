package index

import (
	"sync"
	"sync/atomic"
)

// boxes holds values that cannot lie in a tree that changes while it is read:
// those with pointers, which the garbage collector must see, and those that are
// not 4 or 8 bytes long. The tree has the number of a value's slot. A value is
// written once, before its number is in the tree; a slot is used again when
// nobody can come across its number any more (bplus.Tree.Retire).
type boxes[V any] struct {
	mu    sync.Mutex
	free  []uint64
	next  uint64
	slabs atomic.Pointer[[]*slab[V]]
	held  atomic.Int64
}

// slabSlots is the number of slots that are made at a time.
const slabSlots = 1024

type slab[V any] [slabSlots]atomic.Pointer[box[V]]

// box is a value, and the epoch in which it was put aside for the tree.
type box[V any] struct {
	val  V
	born uint64
}

// put returns the slot of a new value.
func (b *boxes[V]) put(v V, born uint64) (slot uint64) {
	b.mu.Lock()
	slot = b.slot()
	b.mu.Unlock()
	b.at(slot).Store(&box[V]{v, born})
	b.held.Add(1)
	return slot
}

// slot returns a free slot.
func (b *boxes[V]) slot() uint64 {
	if n := len(b.free); n > 0 {
		slot := b.free[n-1]
		b.free = b.free[:n-1]
		return slot
	}
	if b.next%slabSlots == 0 {
		var all []*slab[V]
		if old := b.slabs.Load(); old != nil {
			all = *old
		}
		all = append(all[:len(all):len(all)], new(slab[V]))
		b.slabs.Store(&all)
	}
	b.next++
	return b.next - 1
}

// at returns where the pointer of a slot lies.
func (b *boxes[V]) at(slot uint64) *atomic.Pointer[box[V]] {
	return &(*b.slabs.Load())[slot/slabSlots][slot%slabSlots]
}

// load returns the value in a slot. The number may be an old one: then it
// returns any value, or none, and the caller finds out.
func (b *boxes[V]) load(slot uint64) *box[V] {
	all := b.slabs.Load()
	if all == nil || slot/slabSlots >= uint64(len(*all)) {
		return nil
	}
	return b.at(slot).Load()
}

// drop makes slots free.
func (b *boxes[V]) drop(slots []uint64) {
	for _, s := range slots {
		b.at(s).Store(nil)
	}
	b.held.Add(-int64(len(slots)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, slots...)
}
