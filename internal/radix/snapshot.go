package radix

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// A snapshot is the root of the tree at the end of an epoch; taking one begins the
// next epoch. From then on a writer that is to change a node which was made before
// copies it, and the nodes above it, so that the snapshot keeps what it has.
//
// What is no longer part of the tree but of snapshots is noted with the newest of
// them. When that is closed, what the next older one does not have is free.

// moment is the state of a tree at the end of an epoch.
type moment struct {
	epoch   uint64
	age     uint32 // what has it or less was there
	root    link
	entries int64
	dead    []keptNode  // no longer part of the tree
	vals    []keptValue // likewise
	closed  bool
}

// keptNode is a node and its age.
type keptNode struct {
	node link
	age  uint32
}

// keptValue is a value that stands for memory of the caller's, and the epoch in
// which it was put in.
type keptValue struct{ val, born uint64 }

// retired is what is no longer part of the tree, but may still be read.
type retired struct {
	nodes []link
	vals  []uint64
}

// Snapshot is a tree as it was at one moment. It is closed when nobody needs it
// any more, by hand or by the garbage collector.
type Snapshot struct {
	tree   *Tree
	hold   *hold
	moment *moment
	closed atomic.Bool
}

// Snapshot returns the tree of this moment.
func (t *Tree) Snapshot() (*Snapshot, error) {
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return nil, ErrClosed
	}
	if len(t.moments) >= int(ageHalf/2) {
		return nil, fmt.Errorf("%w: %d snapshots are open", ErrLimit, len(t.moments))
	}
	m := &moment{epoch: t.Epoch(), age: t.age, root: t.top.link, entries: entriesOf(t.top.link)}
	t.moments = append(t.moments, m)
	t.nextAge()
	t.thaw()
	acquiredAll(t)
	s := &Snapshot{tree: t, hold: t.hold, moment: m}
	runtime.AddCleanup(s, t.end, m)
	return s, nil
}

// thaw sets which nodes may be changed: those that no snapshot has.
func (t *Tree) thaw() {
	t.frozen = 0
	if m := t.newest(); m != nil {
		t.frozen = m.age
	}
}

// newest returns the newest snapshot, or nil.
func (t *Tree) newest() *moment {
	if n := len(t.moments); n > 0 {
		return t.moments[n-1]
	}
	return nil
}

// Close gives back what was kept for the snapshot alone.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.tree.end(s.moment)
	}
}

// end closes a snapshot: what it has goes to the next older one, or is free.
func (t *Tree) end(m *moment) {
	t.lockWrite()
	defer t.unlockWrite()
	if m.closed {
		return
	}
	m.closed = true
	i := slices.Index(t.moments, m)
	t.moments = slices.Delete(t.moments, i, i+1)
	var older *moment
	if i > 0 {
		older = t.moments[i-1]
	}
	t.thaw()
	for _, k := range m.dead {
		if older != nil && k.age <= older.age {
			older.dead = append(older.dead, k)
			continue
		}
		t.keptSize.Add(-int64(sizeOf(k.node.class())))
		t.limbo[0].nodes = append(t.limbo[0].nodes, k.node)
	}
	for _, v := range m.vals {
		if older != nil && v.born <= older.epoch {
			older.vals = append(older.vals, v)
			continue
		}
		t.limbo[0].vals = append(t.limbo[0].vals, v.val)
	}
	m.dead, m.vals = nil, nil
	t.advance()
	if t.closed.Load() && len(t.moments) == 0 {
		t.memory.release()
	}
}

// Kept returns the bytes that are kept for snapshots alone.
func (t *Tree) Kept() int64 { return t.keptSize.Load() }

// Retire takes values that are no longer in the tree and stand for memory of the
// caller's. OnFree's function gets them when no reader and no snapshot can need
// them. born is the epoch in which each was put in, or an earlier one.
func (t *Tree) Retire(vals, born []uint64) {
	t.lockWrite()
	defer t.unlockWrite()
	m := t.newest()
	for i, v := range vals {
		if m != nil && born[i] <= m.epoch {
			m.vals = append(m.vals, keptValue{v, born[i]})
			continue
		}
		t.limbo[0].vals = append(t.limbo[0].vals, v)
	}
	t.advance()
}

// drop takes what is no longer part of the tree.
func (t *Tree) drop(l link) {
	if t.fork != nil {
		t.fork.dead = append(t.fork.dead, l)
		return
	}
	if l.isInner() {
		h := l.header()
		setWord(&h.word, (h.word+nextSeq)|dead)
	}
	age := l.age()
	if m := t.newest(); m != nil && age <= m.age {
		m.dead = append(m.dead, keptNode{l, age})
		t.keptSize.Add(int64(sizeOf(l.class())))
		return
	}
	t.limbo[0].nodes = append(t.limbo[0].nodes, l)
	if t.dropped++; t.dropped >= int(atomic.LoadInt64(&dropsPerLook)) {
		t.dropped = 0
		t.advance()
	}
}

// generationTime is the least time between two generations in nanoseconds: a
// bucket of a batch takes less, so that it hardly ever has to be repeated.
var generationTime = int64(time.Millisecond)

// dropsPerLook is how many nodes are retired between two looks at the clock.
var dropsPerLook = int64(64)

var start = time.Now()

// advance begins a new generation, if it is time and there is something to reuse:
// what was retired two generations ago is free. A reader who began in generation g
// may hold nodes that were retired in g or later, and these are not reused before
// g+2. So it looks at the number when it is done, and begins anew if it has grown
// by 2.
func (t *Tree) advance() {
	if len(t.limbo[0].nodes)+len(t.limbo[0].vals)+len(t.limbo[1].nodes)+len(t.limbo[1].vals) == 0 || t.fork != nil {
		return
	}
	now := int64(time.Since(start))
	if now-t.advanced < atomic.LoadInt64(&generationTime) {
		return
	}
	t.advanced = now
	freed := t.limbo[1]
	t.limbo[1], t.limbo[0] = t.limbo[0], retired{}
	atomic.AddUint64(&t.control.gen, 1)
	if t.closed.Load() && len(t.moments) == 0 {
		freed.nodes = nil // all memory is given back
	}
	for _, l := range freed.nodes {
		t.give(l)
	}
	if len(freed.vals) > 0 {
		t.dropVals(freed.vals)
	}
}
