package bplus

import (
	"fmt"
	"maps"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// A snapshot is the number of an epoch. Taking one begins the next epoch, and
// before a leaf is changed for the first time in an epoch its state is kept
// aside, if a snapshot needs it. A commit fails if the epoch has changed since
// the change was computed; so a snapshot has exactly the changes that were
// committed before.
//
// A kept state belongs to the newest snapshot that needs it. Older ones that
// need the same state look for it there. When a snapshot is closed, its states
// go to the next older one that needs them, or are freed (see close.go): no state
// is kept longer than some snapshot needs it.

// history is the snapshots of a tree.
type history[C Code] struct {
	mu     sync.RWMutex
	all    []*moment              // the oldest first; with those that were closed, until their states are handed over
	newest atomic.Pointer[moment] // that is not closed
	freed  []uint32               // leaves to be retired, whose states no snapshot needs
	kept   atomic.Int64           // leaves kept for snapshots alone
}

// moment is the state of a tree at the end of an epoch.
type moment struct {
	epoch  uint64
	newer  atomic.Pointer[moment]
	mu     sync.Mutex
	saved  states     // of leaves that have changed since
	dead   epoch.List // leaves that have died since: snapshots since their birth refer to them, even where they need older states
	closed bool
}

// begin begins a new epoch, and returns the moment before. Of a tree that was
// closed, whose memory may be another's, it returns nil.
func (t *Tree[C]) begin() *moment {
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Closed() {
		return nil
	}
	m := &moment{epoch: t.Epoch(), saved: states{}}
	if n := len(h.all); n > 0 {
		h.all[n-1].newer.Store(m)
	}
	h.all = append(h.all, m)
	h.newest.Store(m)
	t.values.Load().Begin(m.epoch)
	stall.At("held: snapshot listed")
	t.NextEpoch()
	t.edges.AcquireAll()
	return m
}

// preserve keeps lines of a leaf's block, as of its word, for the newest snapshot
// if that needs them, with the lines of their separators; all of the leaf if these
// are all lines, if they are many, or if a leaf was promised. The lines have not
// been changed since the snapshot, or the leaf's info says that they are not
// missing. It returns the lines that have still to be kept before they are
// changed.
//
// It returns false if the leaf's word was another meanwhile: then nothing may be
// kept, even if the word is the same again, since a change that was given up has
// put it back.
func (t *Tree[C]) preserve(x uint32, word, gen, block uint64, used *promises) (missing uint64, ok bool, err error) {
	if mutant.On && mutant.Is("preserve") {
		return 0, true, nil
	}
	h := &t.snapshots
	t.filling.RLock()
	h.mu.RLock()
	for h.mustTakeOver(x) {
		h.mu.RUnlock()
		t.takeOver(x)
		h.mu.RLock()
	}
	switch m := h.newest.Load(); {
	case t.Closed():
		err = op.ErrClosed
	case m == nil:
		ok = true
	default:
		missing, ok, err = t.preserveFor(m, x, word, gen, block, used)
	}
	h.mu.RUnlock()
	t.filling.RUnlock()
	return missing, ok, err
}

// preserveFor is preserve for the newest snapshot.
func (t *Tree[C]) preserveFor(m *moment, x uint32, word, gen, block uint64, used *promises) (missing uint64, ok bool, err error) {
	l := t.leaf(x)
	k := keeping{m: m, x: x, binds: used == nil}
	missing = ^uint64(0)
	if in := l.info(); in.changed() > m.epoch {
		missing, k.changed = in.missing, true
	}
	if block &= missing; block == 0 {
		return missing, true, nil
	}
	m.mu.Lock()
	settled := k.settled()
	m.mu.Unlock()
	if settled {
		return 0, true, nil
	}
	if promised := used != nil && used.take(); promised || bits.OnesCount64(block|^missing) > mostLines {
		ok, err = t.preserveWhole(&k, word, gen, promised)
		return 0, ok, err
	}
	s := par.Get(t.scratches).ready()
	s.copy.copyLines(l, keptWith[C](block))
	*s.copy.info() = *l.info()
	stall.At("held: state copied")
	if ok = l.loadWord() == word && t.Current(gen); ok {
		*s.copy.word() = word
		m.mu.Lock()
		settled, err = t.keepLines(&k, s.copy, block)
		m.mu.Unlock()
		missing &^= block // not all lines: there are at most mostLines
		if settled {
			missing = 0
		}
	}
	par.Put(t.scratches, s)
	return missing, ok && err == nil, err
}

// preserveWhole keeps all of a leaf. Lines that are kept already are as they were;
// the leaf's own may have been changed.
func (t *Tree[C]) preserveWhole(k *keeping, word, gen uint64, promised bool) (ok bool, err error) {
	if k.binds {
		if err := t.room(int64(t.leaves.pool.SlotBytes())); err != nil {
			return false, err
		}
	}
	y, c, err := t.takeLeaf(promised)
	if err != nil {
		return false, err
	}
	s, l, keep := scratch[C]{copy: c}, t.leaf(k.x), c.loadWord()
	s.load(l)
	stall.At("held: state copied")
	c.setEntries(keep, simd.Entries(word))
	if l.loadWord() != word || !t.Current(gen) {
		t.freeLeaf(y)
		return false, nil
	}
	m := k.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.settled() {
		t.freeLeaf(y)
		return true, nil
	}
	if st, there := m.saved.get(k.x); there {
		t.complete(c, st.at, keep)
	}
	m.saved.put(k.x, state{y, true})
	t.snapshots.kept.Add(1)
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
	m.dead.Add(epoch.Kept{Ref: uint64(x), Born: born})
	h.kept.Add(1)
	return true
}

// Kept returns the bytes that are kept for snapshots alone.
func (t *Tree[C]) Kept() int64 {
	return t.snapshots.kept.Load()*int64(t.leaves.pool.SlotBytes()) + t.keeps.bytes()
}

// Snapshot is a tree as it was at one moment. It is read by views, and closed
// when it is no longer needed, by hand or by the garbage collector.
type Snapshot[C Code] struct {
	tree   *Tree[C]
	moment *moment
	closed atomic.Bool
}

// Snapshot returns the tree of this moment. It takes microseconds.
func (t *Tree[C]) Snapshot() (*Snapshot[C], error) {
	t.rw.Lock()
	defer t.rw.Unlock()
	stall.At("snapshot: tree is open")
	m := t.begin()
	if m == nil {
		return nil, op.ErrClosed
	}
	s := &Snapshot[C]{tree: t, moment: m}
	runtime.AddCleanup(s, t.end, s.moment)
	return s, nil
}

// Close gives back the states that were kept for this snapshot alone.
func (s *Snapshot[C]) Close() {
	if !s.closed.Swap(true) {
		s.tree.end(s.moment)
	}
}

// read calls f with a leaf as it was at the moment, until f has seen it
// unchanged from begin to end. The leaf is one that was part of the tree then.
func (s *Snapshot[C]) read(x uint32, f func(l leaf[C], entries int)) { s.readOf(x, false, f) }

// readPilot does so for an f that needs no more than the leaf's pilot.
func (s *Snapshot[C]) readPilot(x uint32, f func(l leaf[C], entries int)) { s.readOf(x, true, f) }

func (s *Snapshot[C]) readOf(x uint32, pilot bool, f func(l leaf[C], entries int)) {
	t := s.tree
	t.rw.RLock()
	defer t.rw.RUnlock()
	l := t.leaf(x)
	for try := 0; ; try++ {
		word := l.loadWord()
		if word&simd.WordLocked != 0 && !s.closed.Load() {
			simd.Wait(try)
			continue
		}
		stall.At("snapshot: word read")
		if l.info().changed() <= s.moment.epoch {
			f(l, simd.Entries(word))
			stall.At("snapshot: leaf read")
			if l.loadWord() == word || s.closed.Load() {
				return
			}
			continue
		}
		if s.readKept(x, word, pilot, f) {
			return
		}
		if s.closed.Load() {
			return
		}
		if stall.On && try > 1_000_000 {
			panic(fmt.Sprintf("leaf %d, word %#x, %+v: no state for epoch %d; %s", x, l.loadWord(), *l.info(), s.moment.epoch, t.snapshots.describe()))
		}
		simd.Wait(try)
	}
}

// readKept calls f with the state of a leaf that was kept, and returns false if
// there is none, or if it needs lines of the leaf, whose word has changed.
func (s *Snapshot[C]) readKept(x uint32, word uint64, pilot bool, f func(l leaf[C], entries int)) bool {
	t := s.tree
	room := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, room)
	c, ok := s.rebuild(x, word, pilot, room.copy)
	if ok {
		f(c, simd.Entries(c.loadWord()))
	}
	return ok
}

// rebuild returns the state of a leaf that was kept. It is c where its lines have
// to be put together: those that were kept for this snapshot or for newer ones,
// and those of the leaf that have not been changed, as of its word. Nothing goes
// from one snapshot to another meanwhile, and a closed one that has states left is
// still between its neighbours.
func (s *Snapshot[C]) rebuild(x uint32, word uint64, pilot bool, c leaf[C]) (leaf[C], bool) {
	t := s.tree
	var done lineSet
	if pilot {
		done.block = ^uint64(0)
	}
	var first known
	l, whole, some := t.leaf(x), false, false
	h := &t.snapshots
	h.mu.RLock()
	defer h.mu.RUnlock()
	for m := s.moment; m != nil && !whole; m = m.newer.Load() {
		m.mu.Lock()
		st, there := m.saved.get(x)
		switch {
		case there && st.whole:
			l, whole = t.leaf(st.at), true
		case there:
			t.addTo(c, st.at, &done)
			if !some {
				first, some = t.piece(st.at).known, true
			}
		}
		m.mu.Unlock()
	}
	if !some {
		return l, whole
	}
	stall.At("held: kept lines read")
	c.copyLines(l, allLines[C]().without(done))
	*c.info() = *l.info()
	c.finish(first, 0)
	return c, whole || l.loadWord() == word || mutant.On && mutant.Is("kept lines' version")
}

// describe lists the snapshots, for tests.
func (h *history[C]) describe() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := ""
	for _, m := range h.all {
		m.mu.Lock()
		out += fmt.Sprintf("[epoch %d, closed %t, saved %v, dead %v] ", m.epoch, m.closed, maps.Collect(m.saved.all), m.dead)
		m.mu.Unlock()
	}
	return out
}
