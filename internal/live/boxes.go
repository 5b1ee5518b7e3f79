package live

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
)

// boxes holds values with pointers, which the garbage collector must see, in Go memory. The
// word of a value is the number of its slot.
type boxes struct {
	val   *index.ValueType
	mu    sync.Mutex
	idle  []uint64 // slots
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

// put takes a value whose memory nobody changes any more.
func (b *boxes) put(v index.Value, born uint64) (slot uint64, err error) {
	b.mu.Lock()
	slot = b.slot()
	b.mu.Unlock()
	s, i := b.at(slot)
	s.born[i] = born
	atomic.StorePointer(&s.vals[i], v.At)
	b.held.Add(1)
	return slot, nil
}

func (b *boxes) putAll(slots []uint64, vals index.Column, rows []int, born uint64) error {
	for i := range slots {
		slots[i], _ = b.put(b.val.Boxed(b.val.Place(vals, row(rows, i))), born)
	}
	return nil
}

// row returns the row that comes as number i, where nil is all in their order.
func row(rows []int, i int) int {
	if rows == nil {
		return i
	}
	return rows[i]
}

// slot returns a free slot.
func (b *boxes) slot() uint64 {
	if n := len(b.idle); n > 0 {
		slot := b.idle[n-1]
		b.idle = b.idle[:n-1]
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

func (b *boxes) born(slot uint64) uint64 {
	s, i := b.at(slot)
	atomic.LoadPointer(&s.vals[i]) // all writes before the value was stored are visible from here on
	return s.born[i]
}

// get returns the value in a slot. The number may be an old one: then it returns any value, or
// none.
func (b *boxes) get(slot uint64) index.Value {
	all := b.slabs.Load()
	if all == nil || slot/slabSlots >= uint64(len(*all)) {
		return index.Value{}
	}
	s, i := b.at(slot)
	return index.Value{At: atomic.LoadPointer(&s.vals[i])}
}

func (b *boxes) getAll(vals index.Column, slots []uint64, found []bool) {
	for i, s := range slots {
		var v index.Value
		if found == nil || found[i] {
			v = b.get(s)
		}
		b.val.Store(b.val.Place(vals, i), v)
	}
}

// same compares boxes themselves, since the number of one may have been used again.
func (b *boxes) same(x, y index.Value) bool { return x.At == y.At }

func (b *boxes) lent(v index.Value) index.Value    { return v }
func (b *boxes) few(slots []uint64, down bool) int { return len(slots) }
func (b *boxes) out(slots []uint64) []uint64       { return slots }

// free makes slots free.
func (b *boxes) free(slots []uint64) {
	for _, s := range slots {
		at, i := b.at(s)
		atomic.StorePointer(&at.vals[i], nil)
	}
	b.held.Add(-int64(len(slots)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, slots...)
}

func (b *boxes) unput(slots []uint64) { b.free(slots) }
func (b *boxes) over()                {} // the garbage collector does it

func (b *boxes) report(s *index.Stats) {
	heap := b.held.Load() * int64(b.val.Size()+24)
	s.HeapBytes += heap
	s.TotalBytes += heap
}

func (b *boxes) count() int64 { return b.held.Load() }
