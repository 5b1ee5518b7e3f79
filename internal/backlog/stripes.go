package backlog

import (
	"sync"
	"sync/atomic"
)

// stripes is the number of parts that keys are divided into, for writers of
// single keys.
const stripes = 64

// Stripes is the locks for writers of the tree in host memory, and the keys that have
// changed there since the GPU was up to date.
type Stripes[K any] struct {
	stripes [stripes]stripe[K]
	dirty   atomic.Int64 // keys that are noted, or about to be
	waiting atomic.Int64 // goroutines that wait for a stripe, or until the log is empty
}

type stripe[K any] struct {
	sync.Mutex
	keys []K
	_    [24]byte
}

// hold locks the stripe of a key, whose hash is given, for a change of it in host memory.
func (s *Stripes[K]) hold(hash uint64) *stripe[K] {
	x := &s.stripes[hash*0x9e3779b97f4a7c15>>58]
	s.enter(x)
	s.dirty.Add(1) // before others can see the change
	return x
}

// One runs f, which changes one key of the tree in host memory, whose hash is given,
// and returns the key to be noted, if it is.
func (s *Stripes[K]) One(hash uint64, f func() (key K, changed bool)) {
	x := s.hold(hash)
	defer x.Unlock()
	if key, changed := f(); changed {
		x.keys = append(x.keys, key)
	} else {
		s.dirty.Add(-1)
	}
}

// enter locks a stripe, and counts as waiting for that time, so that batches
// let it through.
func (s *Stripes[K]) enter(x *stripe[K]) {
	if x.TryLock() {
		return
	}
	s.waiting.Add(1)
	x.Lock()
	s.waiting.Add(-1)
}

// All runs f, which changes any keys of the tree in host memory and returns those to be
// noted. Nobody else changes it meanwhile.
func (s *Stripes[K]) All(f func() (changed []K)) {
	s.waiting.Add(1)
	s.lock()
	s.waiting.Add(-1)
	defer s.unlock()
	s.dirty.Add(1) // before others can see the change
	changed := f()
	s.dirty.Add(int64(len(changed)) - 1)
	s.stripes[0].keys = append(s.stripes[0].keys, changed...)
}

// Dirty returns how many keys are noted, or about to be.
func (s *Stripes[K]) Dirty() int { return int(s.dirty.Load()) }

// Noted returns the keys that are noted. All stripes are held.
func (s *Stripes[K]) Noted() (keys []K) {
	if s.dirty.Load() == 0 {
		return nil
	}
	for i := range s.stripes {
		keys = append(keys, s.stripes[i].keys...)
	}
	return keys
}

// Clear forgets the notes: the GPU has the changes. The caller holds all stripes.
func (s *Stripes[K]) Clear() {
	for i := range s.stripes {
		clear(s.stripes[i].keys)
		s.stripes[i].keys = s.stripes[i].keys[:0]
	}
	s.dirty.Store(0)
}

func (s *Stripes[K]) lock() {
	for i := range s.stripes {
		s.stripes[i].Lock()
	}
}

func (s *Stripes[K]) unlock() {
	for i := range s.stripes {
		s.stripes[i].Unlock()
	}
}
