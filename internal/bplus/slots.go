package bplus

import (
	"fmt"
	"sync"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// slots is the memory for nodes of one kind that a tree has taken from the
// process's pool, behind a lock.
type slots struct {
	pool  *arena.Pool
	tally *arena.Block // counts the memory in use
	mu    sync.Mutex
	all   arena.Slots

	deny func() bool // for tests: whether to deny a slot, in builds with stalls
}

func newSlots(pool *arena.Pool, tally *arena.Block) slots {
	return slots{pool: pool, tally: tally, all: arena.Slots{Pool: pool}}
}

// firstSequence returns the sequence number with which the slots of a chunk
// begin: another one each time that a chunk is taken, so that a word never comes
// back while a goroutine still remembers it. Tests make it begin near the
// greatest.
var firstSequence = func(taken uint64) uint64 { return taken << 30 }

// promise makes sure that n slots can be taken by takePromised. They take no
// memory before they are used.
func (s *slots) promise(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Promise(n)
}

// unpromise takes back the n slots left of a promise.
func (s *slots) unpromise(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Unpromise(n)
}

// take returns a slot, and the least sequence number for its word; promised,
// one of those that were promised.
func (s *slots) take(promised bool) (slot uint32, fresh uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !(promised && s.all.Promised() > 0) && stall.On && s.deny != nil && s.deny() {
		return 0, 0, fmt.Errorf("%w: denied by a test", op.ErrLimit)
	}
	x, serial, err := s.all.Take(promised)
	if err != nil {
		return 0, 0, err
	}
	s.tally.Account(int64(s.pool.SlotBytes()))
	return uint32(x), firstSequence(serial), nil
}

// give takes a slot back. A chunk without any slot in use goes back to the
// pool, unless it is the last.
func (s *slots) give(slot uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all.Give(int(slot)) {
		s.tally.Account(-int64(s.pool.SlotBytes()))
	}
}

// release gives everything back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Account(-int64(s.all.Used()) * int64(s.pool.SlotBytes()))
	s.all.Release()
}

// bytes returns the memory of the slots in use.
func (s *slots) bytes() int64 { return int64(s.inUse()) * int64(s.pool.SlotBytes()) }

// inUse returns the number of slots in use.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Used()
}

// chunks returns the number of chunks in use.
func (s *slots) chunks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Chunks()
}

// memory is the slots that a tree has taken from the pools. Its snapshots share it.
type memory struct{ leaves, uppers, keeps slots }

func newMemory[C Code]() *memory {
	leaves, uppers := pools[C]()
	tally := arena.NewTally()
	return &memory{newSlots(leaves, tally), newSlots(uppers, tally), newSlots(keeps, tally)}
}

func (m *memory) release() {
	m.leaves.release()
	m.uppers.release()
	m.keeps.release()
}

func (m *memory) bytes() int64 { return m.leaves.bytes() + m.uppers.bytes() + m.keeps.bytes() }
