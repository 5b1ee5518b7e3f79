package live

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// boxes holds values that cannot lie in a tree that changes while it is read:
// those with pointers, which the garbage collector must see, and those that are
// not 4 or 8 bytes long. The tree has the number of a value's slot. A value is
// written once, before its number is in the tree; a slot is used again when
// nobody can come across its number any more (bplus.Tree.Retire).
type boxes struct {
	mu    sync.Mutex
	free  []uint64
	next  uint64
	slabs atomic.Pointer[[]*slab]
	held  atomic.Int64
}

// slabSlots is the number of slots that are made at a time.
const slabSlots = 1024

// slab is slots: where each value lies, and the epoch in which it was put aside for the
// tree, which only the goroutine that took it out of the tree reads.
type slab struct {
	vals [slabSlots]unsafe.Pointer // atomic
	born [slabSlots]uint64
}

// put returns the slot of a new value, which nobody changes any more.
func (b *boxes) put(val unsafe.Pointer, born uint64) (slot uint64) {
	b.mu.Lock()
	slot = b.slot()
	b.mu.Unlock()
	s, i := b.at(slot)
	s.born[i] = born
	atomic.StorePointer(&s.vals[i], val)
	b.held.Add(1)
	return slot
}

// slot returns a free slot.
func (b *boxes) slot() uint64 {
	if n := len(b.free); n > 0 {
		slot := b.free[n-1]
		b.free = b.free[:n-1]
		return slot
	}
	if b.next%slabSlots == 0 {
		var all []*slab
		if old := b.slabs.Load(); old != nil {
			all = *old
		}
		all = append(all[:len(all):len(all)], new(slab))
		b.slabs.Store(&all)
	}
	b.next++
	return b.next - 1
}

// at returns the slab of a slot, and its number there.
func (b *boxes) at(slot uint64) (s *slab, i uint64) {
	return (*b.slabs.Load())[slot/slabSlots], slot % slabSlots
}

// born returns the epoch in which a value was put aside that the caller has taken out
// of the tree.
func (b *boxes) born(slot uint64) uint64 {
	s, i := b.at(slot)
	atomic.LoadPointer(&s.vals[i]) // all writes before the value was stored are visible from here on
	return s.born[i]
}

// load returns the value in a slot. The number may be an old one: then it
// returns any value, or none, and the caller finds out.
func (b *boxes) load(slot uint64) unsafe.Pointer {
	all := b.slabs.Load()
	if all == nil || slot/slabSlots >= uint64(len(*all)) {
		return nil
	}
	s, i := b.at(slot)
	return atomic.LoadPointer(&s.vals[i])
}

// drop makes slots free.
func (b *boxes) drop(slots []uint64) {
	for _, s := range slots {
		at, i := b.at(s)
		atomic.StorePointer(&at.vals[i], nil)
	}
	b.held.Add(-int64(len(slots)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, slots...)
}
