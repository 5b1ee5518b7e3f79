package bplus

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// A snapshot is the number of an epoch. Taking one begins the next epoch, and
// before a leaf is changed for the first time in an epoch its state is kept
// aside, if a snapshot needs it. A commit fails if the epoch has changed since
// the change was computed; so a snapshot has exactly what was committed before.
//
// What is kept belongs to the newest snapshot that needs it. Older ones that
// need the same state look for it there. When a snapshot is closed, what it has
// goes to the next older one that needs it, or is free: nothing is kept longer
// than some snapshot needs it.

// history is the snapshots of a tree.
type history[C Code] struct {
	mu     sync.RWMutex
	all    []*moment // the oldest first
	newest atomic.Pointer[moment]
	kept   atomic.Int64 // leaves kept for snapshots alone
}

// moment is the state of a tree at the end of an epoch.
type moment struct {
	epoch  uint64
	newer  atomic.Pointer[moment]
	mu     sync.Mutex
	saved  map[uint32]uint32 // leaf to a copy of its state
	dead   []kept            // leaves that have died since
	vals   []keptValue       // values that have been replaced since
	closed bool
}

// kept is a dead leaf that is kept, and the epoch in which it was made: it is
// what snapshots since then refer to, even where they need an older state of it.
type kept struct {
	leaf uint32
	born uint64
}

// keptValue is a value that stands for memory of the caller's, and the epoch in
// which it was put in.
type keptValue struct{ val, born uint64 }

// lookup returns the copy of a leaf's state.
func (m *moment) lookup(x uint32) (copy uint32, ok bool) {
	for ; m != nil; m = m.newer.Load() {
		m.mu.Lock()
		copy, ok = m.saved[x]
		m.mu.Unlock()
		if ok {
			return copy, true
		}
	}
	return 0, false
}

// begin begins a new epoch, and returns the moment before. Of a tree that was
// closed, whose memory may be another's, it returns nil.
func (t *Tree[C]) begin() *moment {
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.closed.Load() {
		return nil
	}
	m := &moment{epoch: t.Epoch(), saved: map[uint32]uint32{}}
	if n := len(h.all); n > 0 {
		h.all[n-1].newer.Store(m)
	}
	h.all = append(h.all, m)
	h.newest.Store(m)
	stall.At("held: snapshot listed")
	atomic.AddUint64(&t.control.Epoch, 1)
	acquiredAll(t)
	return m
}

// preserve keeps the state of a leaf, as of its word, for the newest snapshot if
// that needs it. The leaf has not been changed in the present epoch.
// It returns false if the leaf's word was another meanwhile: then nothing may be
// kept, even if the word is the same again, since a change that was given up has
// put it back.
func (t *Tree[C]) preserve(x uint32, word, gen uint64, used *promises) (ok bool, err error) {
	t.filling.RLock()
	defer t.filling.RUnlock()
	h := &t.snapshots
	h.mu.RLock()
	defer h.mu.RUnlock()
	if mutant.On && mutant.Is("preserve") {
		return true, nil
	}
	if t.closed.Load() {
		return false, ErrClosed
	}
	m, l := h.newest.Load(), t.leaf(x)
	epoch := l.info().epoch
	if m == nil || epoch > m.epoch {
		return true, nil
	}
	m.mu.Lock()
	_, there := m.saved[x]
	m.mu.Unlock()
	if there {
		return true, nil
	}
	y, c, err := t.newLeaf(used)
	if err != nil {
		return false, err
	}
	s := scratch[C]{copy: c}
	keep := c.loadWord()
	s.load(l)
	stall.At("held: state copied")
	atomic.StoreUint64(c.word(), keep&^(simd.WordCountMax<<simd.WordCount)|uint64(simd.Entries(word))<<simd.WordCount)
	if l.loadWord() != word || !t.Current(gen) {
		t.freeLeaf(y)
		return false, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.saved[x]; there {
		t.freeLeaf(y)
		return true, nil
	}
	m.saved[x] = y
	h.kept.Add(1)
	return true, nil
}

// keepDead keeps a leaf that is dead for the newest snapshot. It returns false
// if that does not need it.
func (h *history[C]) keepDead(x uint32, born uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.newest.Load()
	if m == nil || born > m.epoch {
		return false
	}
	m.dead = append(m.dead, kept{x, born})
	h.kept.Add(1)
	return true
}

// end closes a snapshot: what it has goes to the next older one, or is free.
func (t *Tree[C]) end(m *moment) {
	t.structure.Lock()
	defer t.structure.Unlock()
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	i := slices.Index(h.all, m)
	var older *moment
	if i > 0 {
		older = h.all[i-1]
	}
	for x, y := range m.saved {
		if older == nil || !older.inherit(x, y, t.leaf(y).info().epoch) {
			h.kept.Add(-1)
			t.retire(y, false)
		}
	}
	for _, k := range m.dead {
		if older != nil && k.born <= older.epoch {
			older.dead = append(older.dead, k)
			continue
		}
		h.kept.Add(-1)
		t.retire(k.leaf, false)
	}
	for _, v := range m.vals {
		if older != nil && v.born <= older.epoch {
			older.vals = append(older.vals, v)
			continue
		}
		t.limbo[0].vals = append(t.limbo[0].vals, v.val)
	}
	if older != nil {
		older.newer.Store(m.newer.Load())
	}
	h.all = slices.Delete(h.all, i, i+1)
	h.newest.Store(nil)
	if n := len(h.all); n > 0 {
		h.newest.Store(h.all[n-1])
	}
	t.advance()
	if t.closed.Load() && len(h.all) == 0 {
		t.release()
	}
}

// inherit takes over a state that a newer snapshot has kept, if it needs it.
func (m *moment) inherit(x, y uint32, epoch uint64) bool {
	if epoch > m.epoch {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.saved[x]; there {
		return false
	}
	m.saved[x] = y
	return true
}

// Kept returns the bytes that are kept for snapshots alone.
func (t *Tree[C]) Kept() int64 { return t.snapshots.kept.Load() * int64(t.leaves.pool.SlotBytes()) }

// Snapshot is a tree as it was at one moment. It is read by views, and closed
// when nobody needs it any more, by hand or by the garbage collector.
type Snapshot[C Code] struct {
	tree   *Tree[C]
	moment *moment
	closed atomic.Bool
}

// Snapshot returns the tree of this moment. It takes microseconds.
func (t *Tree[C]) Snapshot() (*Snapshot[C], error) {
	t.lockWrite()
	defer t.unlockWrite()
	stall.At("snapshot: tree is open")
	m := t.begin()
	if m == nil {
		return nil, ErrClosed
	}
	s := &Snapshot[C]{tree: t, moment: m}
	runtime.AddCleanup(s, t.endLater, s.moment)
	return s, nil
}

// endLater closes a snapshot that was forgotten.
func (t *Tree[C]) endLater(m *moment) {
	t.lockWrite()
	defer t.unlockWrite()
	t.end(m)
}

// Close gives back what was kept for the snapshot alone.
func (s *Snapshot[C]) Close() {
	if !s.closed.Swap(true) {
		s.tree.endLater(s.moment)
	}
}

// read calls f with a leaf as it was at the moment, until f has seen it
// unchanged from begin to end. The leaf is one that was part of the tree then.
func (s *Snapshot[C]) read(x uint32, f func(l leaf[C], entries int)) {
	t := s.tree
	t.lockRead()
	defer t.unlockRead()
	l := t.leaf(x)
	for try := 0; ; try++ {
		word := l.loadWord()
		if word&simd.WordLocked != 0 && !s.closed.Load() {
			pause(try)
			continue
		}
		stall.At("snapshot: word read")
		if l.info().epoch <= s.moment.epoch {
			f(l, simd.Entries(word))
			stall.At("snapshot: leaf read")
			if l.loadWord() == word || s.closed.Load() {
				return
			}
			continue
		}
		if y, ok := s.moment.lookup(x); ok {
			c := t.leaf(y)
			f(c, simd.Entries(c.loadWord()))
			return
		}
		if s.closed.Load() {
			return
		}
		if stall.On && try > 1_000_000 {
			panic(fmt.Sprintf("leaf %d, word %#x, %+v: no state for epoch %d; %s", x, l.loadWord(), *l.info(), s.moment.epoch, t.snapshots.describe()))
		}
		pause(try)
	}
}

// describe lists the snapshots, for tests.
func (h *history[C]) describe() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := ""
	for _, m := range h.all {
		m.mu.Lock()
		out += fmt.Sprintf("[epoch %d, closed %t, saved %v, dead %v] ", m.epoch, m.closed, m.saved, m.dead)
		m.mu.Unlock()
	}
	return out
}
