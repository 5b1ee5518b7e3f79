package bplus

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/stall"
)

// slots is the memory for nodes of one kind that a tree has taken from the
// process's pool, chunk by chunk.
type slots struct {
	pool    *arena.Pool
	tally   *arena.Block // counts the memory in use
	mu      sync.Mutex
	chunks  map[int]*chunk
	partial []*chunk // those with free slots
	used    int      // slots handed out
	free    int      // slots that are not
	kept    int      // of these, how many are promised

	deny func() bool // for tests: whether to deny a slot, in builds with stalls
}

// chunk is the free slots of one chunk.
type chunk struct {
	number int
	free   []uint16
	at     int // in partial; -1 if it has no free slot
	// fresh is the sequence number with which slots of the chunk begin: another
	// one each time that a chunk is taken, so that a word never comes back while
	// somebody still remembers it.
	fresh uint64
}

var chunksTaken atomic.Uint64

// firstSequence returns the sequence number with which the slots of a chunk
// begin. Tests let it begin near the greatest.
var firstSequence = func(taken uint64) uint64 { return taken << 30 }

// promise makes sure that n slots can be taken by takePromised. They take no
// memory before they are used.
func (s *slots) promise(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.free-s.kept < n {
		if err := s.grow(); err != nil {
			s.trim()
			return err
		}
	}
	s.kept += n
	return nil
}

// unpromise takes back what is left of a promise.
func (s *slots) unpromise(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept -= n
	s.trim()
}

// trim gives chunks back that have no slot in use and are not promised.
func (s *slots) trim() {
	for i := len(s.partial) - 1; i >= 0; i-- {
		if c := s.partial[i]; len(c.free) == s.pool.Slots() && s.free-len(c.free) >= s.kept {
			s.giveChunk(c)
		}
	}
}

// take returns a slot, and the least sequence number for its word; promised,
// one of those that were promised.
func (s *slots) take(promised bool) (slot uint32, fresh uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if promised && s.kept > 0 {
		s.kept--
	} else if stall.On && s.deny != nil && s.deny() {
		return 0, 0, fmt.Errorf("%w: denied by a test", ErrLimit)
	} else if s.free <= s.kept {
		if err := s.grow(); err != nil {
			return 0, 0, err
		}
	}
	c := s.partial[len(s.partial)-1]
	last := len(c.free) - 1
	slot = uint32(c.number*s.pool.Slots()) + uint32(c.free[last])
	c.free = c.free[:last]
	if last == 0 {
		s.drop(c)
	}
	s.used++
	s.free--
	s.tally.Account(int64(s.pool.SlotBytes()))
	return slot, c.fresh, nil
}

// grow takes one more chunk. The first one stays on small pages, so that a
// small tree is small.
func (s *slots) grow() error {
	number, err := s.pool.Take(len(s.chunks) > 0)
	if err != nil {
		return err
	}
	c := &chunk{number: number, fresh: firstSequence(chunksTaken.Add(1))}
	for i := s.pool.Slots() - 1; i >= 0; i-- {
		c.free = append(c.free, uint16(i))
	}
	if s.chunks == nil {
		s.chunks = map[int]*chunk{}
	}
	s.chunks[number] = c
	s.free += len(c.free)
	s.list(c)
	return nil
}

// give takes a slot back. A chunk without any slot in use goes back to the
// pool, unless it is the last.
func (s *slots) give(slot uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := int(slot) / s.pool.Slots()
	c := s.chunks[number]
	if c == nil { // all of it was given back
		return
	}
	c.free = append(c.free, uint16(int(slot)%s.pool.Slots()))
	s.used--
	s.free++
	s.tally.Account(-int64(s.pool.SlotBytes()))
	if len(c.free) == 1 {
		s.list(c)
	}
	if len(c.free) == s.pool.Slots() && s.free-len(c.free) >= s.kept {
		s.giveChunk(c)
	}
}

// giveChunk gives a chunk back, unless it is the last.
func (s *slots) giveChunk(c *chunk) {
	if len(s.chunks) == 1 {
		return
	}
	s.drop(c)
	delete(s.chunks, c.number)
	s.free -= len(c.free)
	s.pool.Give(c.number)
}

func (s *slots) list(c *chunk) {
	c.at = len(s.partial)
	s.partial = append(s.partial, c)
}

func (s *slots) drop(c *chunk) {
	last := s.partial[len(s.partial)-1]
	s.partial[c.at], last.at = last, c.at
	s.partial = s.partial[:len(s.partial)-1]
	c.at = -1
}

// release gives everything back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range s.chunks {
		s.pool.Give(number)
	}
	s.tally.Account(-int64(s.used) * int64(s.pool.SlotBytes()))
	s.chunks, s.partial, s.used, s.free, s.kept = nil, nil, 0, 0, 0
}

// bytes returns the memory of the slots in use.
func (s *slots) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.used) * int64(s.pool.SlotBytes())
}

// memory is what a tree has taken from the pools. Its snapshots share it.
type memory struct{ leaves, uppers slots }

func newMemory[C Code]() *memory {
	m := new(memory)
	m.leaves.pool, m.uppers.pool = pools[C]()
	m.leaves.tally = arena.NewTally()
	m.uppers.tally = m.leaves.tally
	return m
}

func (m *memory) release() {
	m.leaves.release()
	m.uppers.release()
}

func (m *memory) bytes() int64 { return m.leaves.bytes() + m.uppers.bytes() }

// hold keeps memory from being given back: a tree and its snapshots have it.
type hold struct{ memory *memory }

func newHold(m *memory) *hold {
	h := &hold{m}
	runtime.AddCleanup(h, (*memory).release, m)
	return h
}

// inUse returns the number of slots in use.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
