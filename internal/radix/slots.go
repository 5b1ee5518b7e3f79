package radix

import (
	"runtime"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
)

// slots is the memory for nodes of one type that a tree has taken from the
// process's pool, chunk by chunk. The tree's writers hold its lock.
type slots struct {
	pool    *arena.Pool
	chunks  map[int]*chunk
	partial []*chunk // those with free slots
	used    int      // slots handed out
	free    int      // slots that are not
	kept    int      // of these, how many are promised
}

// chunk is the free slots of one chunk: those that were given back, and those
// from fresh on, which nobody has had yet.
type chunk struct {
	number int
	back   []uint32
	fresh  int
	at     int // in partial; -1 if it has no free slot
}

// promise makes sure that n slots can be taken.
func (s *slots) promise(n int) error {
	for s.free-s.kept < n {
		if err := s.grow(); err != nil {
			s.trim()
			return err
		}
	}
	s.kept += n
	return nil
}

// unpromise takes back what is left of all promises.
func (s *slots) unpromise() {
	s.kept = 0
	s.trim()
}

// trim gives chunks back that have no slot in use.
func (s *slots) trim() {
	for i := len(s.partial) - 1; i >= 0; i-- {
		if i < len(s.partial) {
			s.giveChunk(s.partial[i])
		}
	}
}

// take returns a slot; promised, one of those that were promised, if there are
// any left.
func (s *slots) take(promised bool) (slot int, err error) {
	if promised && s.kept > 0 {
		s.kept--
	} else if s.free <= s.kept {
		if err := s.grow(); err != nil {
			return 0, err
		}
	}
	c := s.partial[len(s.partial)-1]
	if n := len(c.back); n > 0 {
		slot, c.back = int(c.back[n-1]), c.back[:n-1]
	} else {
		slot = c.fresh
		c.fresh++
	}
	slot += c.number * s.pool.Slots()
	s.used++
	s.free--
	if len(c.back) == 0 && c.fresh == s.pool.Slots() {
		s.unlist(c)
	}
	return slot, nil
}

// grow takes one more chunk. The first one stays on small pages, so that a small
// tree is small.
func (s *slots) grow() error {
	number, err := s.pool.Take(len(s.chunks) > 0)
	if err != nil {
		return err
	}
	c := &chunk{number: number}
	if s.chunks == nil {
		s.chunks = map[int]*chunk{}
	}
	s.chunks[number] = c
	s.free += s.pool.Slots()
	s.list(c)
	return nil
}

// give takes a slot back. A chunk without any slot in use goes back to the pool,
// unless it is the last.
func (s *slots) give(slot int) {
	number := slot / s.pool.Slots()
	c := s.chunks[number]
	if c == nil { // all of it was given back
		return
	}
	c.back = append(c.back, uint32(slot%s.pool.Slots()))
	s.used--
	s.free++
	if c.at < 0 {
		s.list(c)
	}
	if len(c.back) == c.fresh {
		s.giveChunk(c)
	}
}

// giveChunk gives a chunk back that has no slot in use, unless it is the last or
// its slots are promised.
func (s *slots) giveChunk(c *chunk) {
	if n := s.pool.Slots(); len(c.back) < c.fresh || len(s.chunks) == 1 || s.free-n < s.kept {
		return
	}
	s.unlist(c)
	delete(s.chunks, c.number)
	s.free -= s.pool.Slots()
	s.pool.Give(c.number)
}

func (s *slots) list(c *chunk) {
	c.at = len(s.partial)
	s.partial = append(s.partial, c)
}

func (s *slots) unlist(c *chunk) {
	last := s.partial[len(s.partial)-1]
	s.partial[c.at], last.at = last, c.at
	s.partial = s.partial[:len(s.partial)-1]
	c.at = -1
}

// memory is what a tree has taken from the pools. Its snapshots share it.
type memory struct {
	slots [types]slots
	long  longKeys
	used  int64        // bytes in use; the writer's
	tally *arena.Block // counts them, about
	about atomic.Int64 // what it knows of
}

func newMemory() *memory {
	reserve()
	m := &memory{tally: arena.NewTally()}
	for kind := node4; kind < types; kind++ {
		m.slots[kind].pool = pools[kind]
	}
	return m
}

// take returns a slot for a type.
func (m *memory) take(kind int, promised bool) (link, error) {
	slot, err := m.slots[kind].take(promised)
	if err != nil {
		return 0, err
	}
	m.account(int64(places[kind].size))
	return linkTo(kind, slot), nil
}

// give takes a slot back that nobody can be reading.
func (m *memory) give(l link) {
	if l.kind() == leafLong {
		x := (*longLeaf)(l.at())
		m.long.drop(x.handle)
		m.account(-int64(x.length))
	}
	m.slots[l.kind()].give(l.number())
	m.account(-int64(places[l.kind()].size))
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
	for kind := node4; kind < types; kind++ {
		s := &m.slots[kind]
		for number := range s.chunks {
			s.pool.Give(number)
		}
		*s = slots{pool: s.pool}
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
