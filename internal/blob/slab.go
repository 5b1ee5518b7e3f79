package blob

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// A slab belongs to one store and class from the time that it is taken from the pool until it
// is given back. Its slots are taken under the lock of the class, up to 64 at a time; they are
// freed without it, by setting a bit. A slab is
//
//	open       slots are taken from it: one of each class at most
//	full       nobody looks at it before enough slots are free
//	listed     some slots are free, and it may be opened
//	emptying   its values are moved elsewhere: no slot is taken
//
// and goes back to the pool when its last slot is freed, unless it is open.
const (
	stateOpen = iota + 1
	stateFull
	stateListed
	stateEmptying
)

// header is the begin of a slab.
type header struct {
	who    atomic.Uint64 // store and class: see Store.who
	base   atomic.Uint64 // epoch that tags begin after
	live   atomic.Int32  // slots that are not free
	state  atomic.Uint32 // changes under the lock of the class
	at     int32         // in slabs of the class
	listed int32         // in the list of the class; -1 if it is not
	next   int32         // the word of the bits to look at next, while the slab is open
	_      [headerBytes - 36]byte
}

const headerBytes = 64

func headerOf(slab uint32) *header {
	return (*header)(unsafe.Add(slabs.Base(0), uintptr(slab)<<slabShift))
}

// free returns word w of the bits that say which slots are free.
func (h *header) free(w int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(unsafe.Pointer(h), headerBytes+w*8))
}

// slot returns where a slot lies.
func (h *header) slot(c *class, i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(h), c.first+i*c.size)
}

// tags returns the tags of the slots.
func (h *header) tags(c *class) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Add(unsafe.Pointer(h), c.tags)), c.slots)
}

// shelf is the slabs of one class that a store has.
type shelf struct {
	mu    sync.Mutex
	slabs []uint32
	list  []uint32 // those that are listed
	open  int64    // the open one; -1 for none
}

// stash is free slots that a shard has taken out of a slab: those of one word of its bits.
type stash struct {
	slab uint32
	word int32
	bits uint64
}

// refill fills a stash that is empty.
func (m *memory) refill(x *stash, cl int, epoch uint64) error {
	f, c := &m.shelves[cl], &classes[cl]
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if f.open < 0 {
			if err := m.openSlab(f, cl, epoch); err != nil {
				return err
			}
		}
		h := headerOf(uint32(f.open))
		for words := int32((c.slots + 63) / 64); h.next < words; h.next++ {
			if bits := h.takeWord(int(h.next), c.batch); bits != 0 {
				h.tag(c, int(h.next), bits, epoch)
				*x = stash{uint32(f.open), h.next, bits}
				return nil
			}
		}
		h.state.Store(stateFull)
		f.open = -1
		f.relist(h, c)
	}
}

// takeWord takes some free slots of a word of bits, n at most, out of it.
func (h *header) takeWord(w, n int) (took uint64) {
	word := h.free(w)
	if word.Load() == 0 {
		return 0
	}
	took = word.Swap(0)
	if more := bits.OnesCount64(took) - n; more > 0 {
		rest := took
		for range n {
			rest &= rest - 1
		}
		took &^= rest
		word.Or(rest)
	}
	h.live.Add(int32(bits.OnesCount64(took)))
	return took
}

// openSlab opens a slab that has free slots, or a new one. The shelf's lock is held.
func (m *memory) openSlab(f *shelf, cl int, epoch uint64) error {
	if n := len(f.list); n > 0 {
		h := headerOf(f.list[n-1])
		f.open, f.list = int64(f.list[n-1]), f.list[:n-1]
		h.listed, h.next = -1, 0
		h.state.Store(stateOpen)
		return nil
	}
	c := &classes[cl]
	chunk, err := slabs.Take(c.size <= hugeSlot && len(f.slabs) >= hugeFrom)
	if err != nil {
		return err
	}
	h := headerOf(uint32(chunk))
	h.who.Store(m.who(cl))
	h.base.Store(epoch - 1)
	h.live.Store(0)
	h.state.Store(stateOpen)
	h.at, h.listed, h.next = int32(len(f.slabs)), -1, 0
	for w := range (c.slots + 63) / 64 {
		h.free(w).Store(^uint64(0))
	}
	if rest := c.slots % 64; rest > 0 {
		h.free(c.slots / 64).Store(1<<rest - 1)
	}
	f.slabs = append(f.slabs, uint32(chunk))
	f.open = int64(chunk)
	m.account(slabBytes)
	return nil
}

// hugeFrom is the number of slabs of a class from which on they are on huge pages, if slots
// have at most hugeSlot bytes: large ones leave pages untouched behind the last.
const (
	hugeFrom = 32
	hugeSlot = 4 << 10
)

// mostTag is the greatest tag. A slot with tag t was taken in epoch base+t, one with tag 0 at
// any time before.
const mostTag = 255

// tag notes the epoch in which slots of a word were taken. The lock of the class is held.
func (h *header) tag(c *class, w int, took, epoch uint64) {
	t := epoch - h.base.Load()
	if t-1 >= mostTag { // also an epoch before that of another writer: then t is less than 1
		if int64(t) <= 0 {
			t = 0
		} else {
			h.rebase(c, epoch-mostTag/2)
			t = mostTag / 2
		}
	}
	tags := h.tags(c)
	for ; took != 0; took &= took - 1 {
		tags[w*64+bits.TrailingZeros64(took)] = uint8(t)
	}
}

// rebase makes tags begin after another epoch. A goroutine that reads a tag meanwhile may
// take an older base with a newer tag, and so an earlier epoch than it was, but never a later
// one.
func (h *header) rebase(c *class, base uint64) {
	less := base - h.base.Load()
	early := mutant.On && mutant.Is("blob: tags first")
	if early {
		h.base.Store(base)
		stall.At("held: base moved")
	}
	for i, t := range h.tags(c) {
		if uint64(t) > less {
			h.tags(c)[i] = t - uint8(less)
		} else {
			h.tags(c)[i] = 0
		}
	}
	if !early {
		stall.At("held: tags moved")
		h.base.Store(base)
	}
}

// born returns the epoch in which a slot was taken, or an earlier one; 0 if it is long ago.
func (h *header) born(c *class, slot int) uint64 {
	base := h.base.Load()
	stall.At("blob: base read")
	if t := h.tags(c)[slot]; t > 0 {
		return base + uint64(t)
	}
	return 0
}

// freeSlot frees a slot. The caller holds the lock of a shard, so that the store is not
// closed.
func (m *memory) freeSlot(slab uint32, slot, cl int) {
	h, c := headerOf(slab), &classes[cl]
	late := mutant.On && mutant.Is("blob: bit first")
	if !late {
		h.free(slot / 64).Or(1 << (slot % 64))
	}
	stall.At("held: slot freed, not counted")
	// Once it is counted the slab may be another's.
	n := h.live.Add(-1)
	if late {
		stall.At("held: slot counted")
		h.free(slot / 64).Or(1 << (slot % 64))
	}
	if n == 0 || n == int32(c.list) {
		stall.At("held: slot counted")
		m.settle(slab, cl)
	}
}

// unstash gives the slots of a stash back.
func (m *memory) unstash(x *stash, cl int) {
	if x.bits == 0 {
		return
	}
	h := headerOf(x.slab)
	h.free(int(x.word)).Or(x.bits)
	h.live.Add(-int32(bits.OnesCount64(x.bits)))
	x.bits = 0
	m.settle(x.slab, cl)
}

// settle lists a slab that has enough free slots, and gives one back that has no other. Of
// several goroutines that come for the same slab the first may have done it.
func (m *memory) settle(slab uint32, cl int) {
	f := &m.shelves[cl]
	f.mu.Lock()
	h := headerOf(slab)
	gone := false
	switch {
	case h.who.Load() != m.who(cl) && !(mutant.On && mutant.Is("blob: slab is still ours")):
	case h.state.Load() == stateOpen:
	case h.live.Load() == 0:
		m.remove(f, h)
		gone = true
	default:
		f.relist(h, &classes[cl])
	}
	f.mu.Unlock()
	if gone {
		slabs.Give(int(slab))
	}
}

// relist lists a slab that is full if enough of its slots are free.
func (f *shelf) relist(h *header, c *class) {
	if h.state.Load() != stateFull || int(h.live.Load()) > c.list {
		return
	}
	h.state.Store(stateListed)
	h.listed = int32(len(f.list))
	f.list = append(f.list, f.slabs[h.at])
}

// unlist takes a slab out of the list, if it is there.
func (f *shelf) unlist(h *header) {
	if h.listed < 0 {
		return
	}
	last := f.list[len(f.list)-1]
	f.list[h.listed] = last
	headerOf(last).listed = h.listed
	f.list = f.list[:len(f.list)-1]
	h.listed = -1
}

// remove takes a slab off its shelf. The caller gives it back, for which it needs no lock.
func (m *memory) remove(f *shelf, h *header) {
	f.unlist(h)
	last := f.slabs[len(f.slabs)-1]
	f.slabs[h.at] = last
	headerOf(last).at = h.at
	f.slabs = f.slabs[:len(f.slabs)-1]
	if cap(f.slabs) > 4*len(f.slabs)+64 {
		f.slabs, f.list = slices.Clone(f.slabs), slices.Clone(f.list)
	}
	h.who.Store(0)
	m.account(-slabBytes)
}
