package live

import (
	"sync"
	"time"

	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/stall"
)

// keep makes the store of a map whose values lie off the heap. Its words are as wide as
// Refs.
func (m *Map) keep() {
	m.size = 8
	s := &stored{val: m.val, freed: m.tidyLater}
	s.store = blob.New(m.cfg.Limit, func() int64 {
		if m.tree == nil { // it is loaded
			return 0
		}
		return m.tree.Bytes()
	})
	s.store.SetLimit(m.cfg.Bound())
	m.apart = s
}

// joinStore has the tree count the values of a store, where there is a limit.
func (m *Map) joinStore() error {
	s, ok := m.apart.(*stored)
	if !ok || m.cfg.Limit == 0 {
		return nil
	}
	m.gens.Beside(s.bytes)
	if n := m.tree.Bytes() + s.bytes(); !m.cfg.Loose && n > m.cfg.Limit {
		return index.Problem(index.ErrMemoryLimit, "the entries take %d bytes, the limit is %d", n, m.cfg.Limit)
	}
	return nil
}

// tidying empties slabs of values that are mostly free: their values are moved to others, and
// the slabs go back to the system. It has no goroutine while there is nothing to do.
type tidying struct {
	later par.Later
	mu    sync.Mutex // held by the goroutine that does it
	slabs *blob.Emptying
	looks int // since all values were moved
}

const (
	// tidyPause is how long values are freed before somebody looks for slabs to empty, and how
	// long slabs wait at a time for their last readers.
	tidyPause = 10 * time.Millisecond

	// mostLooks is how often: then what is left there is a snapshot's.
	mostLooks = 50
)

// tidyLater has slabs emptied, if it pays: values were freed.
func (m *Map) tidyLater() {
	if !m.tidying.later.Due() {
		m.tidying.later.Do(tidyPause, m.tidy)
	}
}

// closed takes note that a snapshot was closed, whose values can be moved from now on.
func (m *Map) closed() {
	if s, ok := m.apart.(*stored); ok {
		s.store.Reconsider()
		m.tidyLater()
	}
}

// tidy empties slabs, and reports whether it has to come again: values that were moved leave
// their slabs when no reader can have them any more.
func (m *Map) tidy() (again bool) {
	t, s := &m.tidying, m.apart.(*stored)
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.slabs != nil {
		if t.looks++; t.slabs.Left() > 0 && t.looks < mostLooks && !m.tree.Closed() {
			return true
		}
		t.slabs.Done()
		t.slabs = nil
	}
	if m.tree.Closed() || !s.store.Sparse() {
		return false
	}
	if t.slabs, t.looks = s.store.Empty(), 0; t.slabs == nil {
		return false
	}
	m.moveAll(s, t.slabs)
	return true
}

// moveAll moves all values out of slabs that are emptied, but for those of snapshots.
func (m *Map) moveAll(s *stored, slabs *blob.Emptying) {
	c := m.tree.Cursor()
	defer c.Done()
	if !c.Move(index.NoEdge, false) {
		return
	}
	for {
		k, word, ok := c.Next()
		if !ok || m.tree.Closed() {
			return
		}
		if r := blob.Ref(word); slabs.Has(r) && !s.inSnapshot(r, m.gens.Newest()) { // else the tree need not be asked
			m.move(s, slabs, k)
		}
	}
}

// inSnapshot reports whether the newest snapshot may have a value: to move it would make two of
// it.
func (s *stored) inSnapshot(r blob.Ref, newest uint64) bool {
	return newest != 0 && s.store.Born(r) <= newest
}

// move moves the value of a key, if it is to be moved. The tree changes its word only if that
// is what it was, and no value was freed since: else a Ref might have been used again, for
// another value of the same key, and the old bytes would come back.
func (m *Map) move(s *stored, slabs *blob.Emptying, key order.Probe) {
	if mutant.On && mutant.Is("live: moved by compare-and-swap") {
		m.moveBlindly(s, slabs, key)
		return
	}
	to := blob.Ref(0)
	undo := func() {
		if to != 0 {
			s.store.Drop(to)
			to = 0
		}
	}
	was, had, err := m.tree.Update(key, func(old uint64, had bool, gen uint64) (uint64, bool) {
		undo()
		r := blob.Ref(old)
		if !had || !slabs.Has(r) || s.inSnapshot(r, m.gens.Newest()) {
			return old, had
		}
		moved, err := slabs.Move(r, m.gens.Epoch())
		if err != nil {
			return old, had
		}
		stall.At("live: value moved")
		to = moved
		return uint64(to), true
	})
	if err != nil {
		undo()
	}
	if to != 0 && had {
		m.oneGone(was)
	}
}

// moveBlindly is move without a look at what the tree has by then.
func (m *Map) moveBlindly(s *stored, slabs *blob.Emptying, key order.Probe) {
	word, _ := m.tree.Get(key)
	to, _ := slabs.Move(blob.Ref(word), m.gens.Epoch())
	stall.At("live: value moved")
	if was, had, err := m.tree.Set(key, uint64(to)); err == nil && had {
		m.oneGone(was)
	}
}
