package radix

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// memory is what a tree has taken from the pools. Its snapshots share it. Writers
// hold the tree's lock.
type memory struct {
	slots [classes]arena.Slots
	long  longKeys
	used  int64        // bytes in use; the writer's
	tally *arena.Block // counts them, about
	about atomic.Int64 // what it knows of
}

func newMemory() *memory {
	reserve()
	m := &memory{tally: arena.NewTally()}
	for class := node2; class < classes; class++ {
		m.slots[class].Pool = pools[min(class, inners)]
		m.slots[class].Stride = max(class-inners, 1)
	}
	return m
}

// take returns a slot of a class.
func (m *memory) take(class int, promised bool) (link, error) {
	slot, _, err := m.slots[class].Take(promised)
	if err != nil {
		return 0, err
	}
	m.account(int64(sizeOf(class)))
	if class >= inners {
		return link(leafBit | uint32(slot)), nil
	}
	return linkTo(class, slot), nil
}

// give takes a slot back that nobody can be reading.
func (m *memory) give(l link) {
	class, slot := l.class(), l.number()
	if l.isLeaf() {
		if slot = int(l &^ leafBit); l.leaf().length() == longLength {
			x := (*longLeaf)(unsafe.Pointer(l.leaf()))
			m.long.drop(x.handle)
			m.account(-int64(x.length))
		}
	}
	m.slots[class].Give(slot)
	m.account(-int64(sizeOf(class)))
}

// tallyStep is by how many bytes the count of all memory may be wrong: to tell it
// each time takes longer than to fill a leaf.
const tallyStep = 64 << 10

func (m *memory) account(delta int64) {
	m.used += delta
	if off := m.used - m.about.Load(); off >= tallyStep || off <= -tallyStep {
		m.tell()
	}
}

// tell tells the count of all memory what is in use.
func (m *memory) tell() {
	m.tally.Account(m.used - m.about.Load())
	m.about.Store(m.used)
}

// release gives everything back.
func (m *memory) release() {
	for class := node2; class < classes; class++ {
		m.slots[class].Release()
	}
	m.long.clear()
	m.used = 0
	m.tell()
}

// hold keeps memory from being given back: a tree and its snapshots have it.
type hold struct{ memory *memory }

func newHold(m *memory) *hold {
	h := &hold{m}
	runtime.AddCleanup(h, (*memory).release, m)
	return h
}
