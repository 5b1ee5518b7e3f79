package bplus

import (
	"maps"
	"slices"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// A snapshot that is closed hands its states to the next older one that is not, some leaves at
// a time: others have their turn in between. Until all are handed over it stays in the history,
// where readers of older snapshots find its states. A writer that is about to keep lines of a
// leaf has to know which are kept already: it takes over the states of that leaf itself.
//
// The states of a leaf are handed over oldest first, whichever snapshot is closed first. An
// incomplete state is only right with those between it and the leaf: a later one that came to
// an older snapshot before it would be taken for one that the snapshot does not need.

// handPiece is the number of states that are handed over before others have their turn: some
// hundred microseconds. It is a variable for tests.
var handPiece = 128

func init() {
	if stall.On {
		handPiece = 2
	}
}

// end closes a snapshot: its states go to the next older one, or are freed.
func (t *Tree[C]) end(m *moment) {
	if !t.beginEnd(m) {
		return
	}
	for pages := t.snapshots.pagesOf(m); len(pages) > 0; {
		pages = t.handSome(m, pages)
		stall.At("snapshot: some are handed over")
	}
	for t.handDead(m) {
		stall.At("snapshot: some are handed over")
	}
	t.values.Load().End(m.epoch)
	t.finishEnd(m)
}

// beginEnd says that a snapshot is closed. It returns false if it was before.
func (t *Tree[C]) beginEnd(m *moment) bool {
	t.rw.Lock()
	defer t.rw.Unlock()
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.closed {
		return false
	}
	m.closed = true
	h.newest.Store(h.openBefore(len(h.all)))
	return true
}

// openBefore returns the newest snapshot before number i that is not closed, or nil.
func (h *history[C]) openBefore(i int) *moment {
	for i--; i >= 0; i-- {
		if !h.all[i].closed {
			return h.all[i]
		}
	}
	return nil
}

// pagesOf returns the numbers of the pages of a closed snapshot's states. States may be taken
// over meanwhile, and none are added.
func (h *history[C]) pagesOf(m *moment) []uint32 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Collect(maps.Keys(m.saved))
}

// handSome hands over some states of a closed snapshot, and returns which of some pages are left.
func (t *Tree[C]) handSome(m *moment, pages []uint32) (left []uint32) {
	t.rw.Lock()
	defer t.rw.Unlock()
	defer t.retireFreed()
	h, n := &t.snapshots, 0
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.all, m)
	for ; len(pages) > 0; pages = pages[1:] {
		for j, st := range m.saved[pages[0]] {
			if st == 0 {
				continue
			}
			if n == handPiece {
				return pages
			}
			t.handLeaf(i, pages[0]*statesInRow+uint32(j))
			n++
		}
		delete(m.saved, pages[0])
	}
	return nil
}

// handLeaf hands over the states that closed snapshots have of a leaf: number i, and those
// between it and the next older one that is not closed. The caller holds the history alone.
func (t *Tree[C]) handLeaf(i int, x uint32) {
	h, from := &t.snapshots, i
	for from > 0 && h.all[from-1].closed && !(mutant.On && mutant.Is("oldest states first")) {
		from--
	}
	older := h.openBefore(from)
	for _, m := range h.all[from : i+1] {
		if st, ok := m.saved.take(x); ok {
			t.pass(older, x, st)
		}
	}
}

// mustTakeOver reports whether snapshots that were closed have states of a leaf that the
// newest one does not have yet.
func (h *history[C]) mustTakeOver(x uint32) bool {
	if h.newest.Load() == nil || mutant.On && mutant.Is("older snapshot's states") {
		return false
	}
	for i := len(h.all) - 1; h.all[i].closed; i-- {
		if _, there := h.all[i].saved.get(x); there {
			return true
		}
	}
	return false
}

// takeOver hands over the states of a leaf that the newest snapshot does not have yet.
func (t *Tree[C]) takeOver(x uint32) {
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := len(h.all) - 1; last >= 0 && h.all[last].closed {
		t.handLeaf(last, x)
	}
}

// handDead hands over some of the dead leaves that were kept for a closed snapshot, and
// reports whether there were any.
func (t *Tree[C]) handDead(m *moment) (more bool) {
	t.rw.Lock()
	defer t.rw.Unlock()
	defer t.retireFreed()
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	to, until := (*epoch.List)(nil), uint64(0)
	if older := h.openBefore(slices.Index(h.all, m)); older != nil {
		to, until = &older.dead, older.epoch
	}
	return m.dead.Pass(handPiece, to, until, func(x uint64) { h.freed = append(h.freed, uint32(x)) })
}

// retireFreed retires leaves that no snapshot needs any more.
func (t *Tree[C]) retireFreed() {
	h := &t.snapshots
	h.mu.Lock()
	freed := h.freed
	h.freed = nil
	h.mu.Unlock()
	if len(freed) == 0 {
		return
	}
	t.structure.Lock()
	defer t.structure.Unlock()
	for _, x := range freed {
		h.kept.Add(-1)
		t.retire(uint64(x))
	}
	t.advance()
}

// finishEnd takes a snapshot that has nothing left out of the history. If the tree is closed,
// and it was the last, all memory is given back.
func (t *Tree[C]) finishEnd(m *moment) {
	t.rw.Lock()
	defer t.rw.Unlock()
	t.retireFreed() // what writers have taken over
	t.structure.Lock()
	defer t.structure.Unlock()
	h := &t.snapshots
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.all, m)
	if i > 0 {
		h.all[i-1].newer.Store(m.newer.Load())
	}
	h.all = slices.Delete(h.all, i, i+1)
	t.advance()
	if t.Closed() && len(h.all) == 0 {
		t.release()
	}
}
