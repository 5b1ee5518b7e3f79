package arena

import "sync/atomic"

// Slots is the memory for nodes of one size that a tree has taken from a pool of
// the process, chunk by chunk. Its caller holds a lock, or is alone.
type Slots struct {
	Pool *Pool
	// Stride is how many slots of the pool one slot takes; 0 is one. Pools whose
	// slots are a unit, such as 8 bytes, serve nodes of several sizes.
	Stride int

	chunks  map[int]*slotChunk
	partial []*slotChunk // those with free slots, some of which were in use before
	spare   []*slotChunk // those that nobody has had a slot of: they take no memory yet
	used    int          // slots handed out
	free    int          // slots that are not
	kept    int          // of these, how many are promised
}

// slotChunk is the free slots of one chunk: those that were given back, and those
// from fresh on, which nobody has had yet.
type slotChunk struct {
	number int
	serial uint64
	back   []uint32
	fresh  int
	at     int // in partial; -1 if it has no free slot
}

// chunksTaken is the number of chunks that were ever taken.
var chunksTaken atomic.Uint64

func (s *Slots) stride() int { return max(s.Stride, 1) }

// perChunk returns the number of slots of a chunk.
func (s *Slots) perChunk() int { return s.Pool.Slots() / s.stride() }

// Used returns the number of slots in use.
func (s *Slots) Used() int { return s.used }

// Promised returns the number of slots that were promised and not taken yet.
func (s *Slots) Promised() int { return s.kept }

// Balanced reports whether slots in use and free ones are all that there are.
func (s *Slots) Balanced() bool { return s.used+s.free == len(s.chunks)*s.perChunk() }

// Promise makes sure that n slots can be taken. They take no memory before they
// are used.
func (s *Slots) Promise(n int) error {
	for s.free-s.kept < n {
		if err := s.grow(); err != nil {
			s.trim()
			return err
		}
	}
	s.kept += n
	return nil
}

// Repromise promises one slot more, which the caller has and gives back next.
func (s *Slots) Repromise() { s.kept++ }

// Unpromise takes back the promise of n slots.
func (s *Slots) Unpromise(n int) {
	s.kept -= n
	s.trim()
}

// trim gives chunks back that have no slot in use.
func (s *Slots) trim() {
	for n := len(s.spare) - 1; n >= 0 && s.dispensable(); n-- {
		c := s.spare[n]
		s.spare = s.spare[:n]
		s.dropChunk(c)
	}
	for i := len(s.partial) - 1; i >= 0; i-- {
		if i < len(s.partial) {
			s.giveChunk(s.partial[i])
		}
	}
}

// Take returns a slot, as its number in the pool; promised, one of those that were
// promised, if there are any left. serial is the number of the time that a chunk was
// taken: it is another one whenever the slot's memory was another's meanwhile.
func (s *Slots) Take(promised bool) (slot int, serial uint64, err error) {
	if promised && s.kept > 0 {
		s.kept--
	} else if s.free <= s.kept {
		if err := s.grow(); err != nil {
			return 0, 0, err
		}
	}
	c := s.open()
	if n := len(c.back); n > 0 {
		slot, c.back = int(c.back[n-1]), c.back[:n-1]
	} else {
		slot = c.fresh
		c.fresh++
	}
	s.taken(c, 1)
	return slot*s.stride() + c.number*s.Pool.Slots(), c.serial, nil
}

// TakeFresh returns the first of some slots in a row that nobody has had yet, and how many they
// are: n, or the rest of a chunk. There are none where Take would return one that was given back,
// or if fewer than n are free, or promised if that is asked for. It is faster than to take them
// one by one.
func (s *Slots) TakeFresh(n int, promised bool) (first, count int) {
	if promised && s.kept < n || !promised && s.free-s.kept < n {
		return 0, 0
	}
	c := s.open()
	if len(c.back) > 0 {
		return 0, 0
	}
	first, count = c.fresh*s.stride()+c.number*s.Pool.Slots(), min(n, s.perChunk()-c.fresh)
	if promised {
		s.kept -= count
	}
	c.fresh += count
	s.taken(c, count)
	return first, count
}

// open returns a chunk that has a free slot. The caller has made sure that there is one.
func (s *Slots) open() *slotChunk {
	if len(s.partial) == 0 {
		s.list(s.spare[0])
		s.spare = s.spare[1:]
	}
	return s.partial[len(s.partial)-1]
}

// taken notes that slots of a chunk were taken.
func (s *Slots) taken(c *slotChunk, n int) {
	s.used += n
	s.free -= n
	if len(c.back) == 0 && c.fresh == s.perChunk() {
		s.unlist(c)
	}
}

// grow takes one more chunk. The first one stays on small pages, so that a small
// tree is small.
func (s *Slots) grow() error {
	number, err := s.Pool.Take(len(s.chunks) > 0)
	if err != nil {
		return err
	}
	c := &slotChunk{number: number, serial: chunksTaken.Add(1), at: -1}
	if s.chunks == nil {
		s.chunks = map[int]*slotChunk{}
	}
	s.chunks[number] = c
	s.free += s.perChunk()
	s.spare = append(s.spare, c)
	return nil
}

// Give takes a slot back, and reports whether it was one of these: all of them may
// have been given back before. A chunk without any slot in use goes back to the pool,
// unless it is the last.
func (s *Slots) Give(slot int) bool {
	c := s.chunks[slot/s.Pool.Slots()]
	if c == nil {
		return false
	}
	c.back = append(c.back, uint32(slot%s.Pool.Slots()/s.stride()))
	s.used--
	s.free++
	if c.at < 0 {
		s.list(c)
	}
	if len(c.back) == c.fresh {
		s.giveChunk(c)
	}
	return true
}

// giveChunk gives a chunk back that has no slot in use, unless it is the last or
// its slots are promised.
func (s *Slots) giveChunk(c *slotChunk) {
	if len(c.back) < c.fresh || !s.dispensable() {
		return
	}
	s.unlist(c)
	s.dropChunk(c)
}

// dispensable reports whether there is a chunk more than are needed, if all of its slots
// are free.
func (s *Slots) dispensable() bool {
	return len(s.chunks) > 1 && s.free-s.perChunk() >= s.kept
}

func (s *Slots) dropChunk(c *slotChunk) {
	delete(s.chunks, c.number)
	s.free -= s.perChunk()
	s.Pool.Give(c.number)
}

func (s *Slots) list(c *slotChunk) {
	c.at = len(s.partial)
	s.partial = append(s.partial, c)
}

func (s *Slots) unlist(c *slotChunk) {
	last := s.partial[len(s.partial)-1]
	s.partial[c.at], last.at = last, c.at
	s.partial = s.partial[:len(s.partial)-1]
	c.at = -1
}

// Release gives everything back.
func (s *Slots) Release() {
	for number := range s.chunks {
		s.Pool.Give(number)
	}
	*s = Slots{Pool: s.Pool, Stride: s.Stride}
}

// Chunks returns the number of chunks that were taken.
func (s *Slots) Chunks() int { return len(s.chunks) }
