package radix

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Tree is a map from strings to values of 64 bits that any number of goroutines
// may read and change at once.
//
// Readers take no lock and write nothing (where epoch.Optimistic is true; elsewhere a
// plain lock guards the tree). They read each inner node between two looks at its word.
// A writer finds the nodes that it is to change as a reader does, and locks their words
// if they are unchanged; so writers wait only for writers of the same node. A node that
// is replaced by another, larger or smaller, is marked dead, and a goroutine that meets
// it begins again at the root. Leaves do not change but for their value, which is one
// word.
//
// docs/radix.md has the protocol and the argument why it is right.
type Tree struct {
	epoch.Clock // first, see there
	top         top
	short       atomic.Pointer[shortcut.Table]
	*memory
	hold   *epoch.Hold
	limit  atomic.Int64 // 0 is none
	beside func() int64 // bytes of the tree's user that count, too; nil for none
	rw     epoch.Lock   // comes after the locks of desks
	edges  epoch.Edges

	keptSize atomic.Int64
	values   atomic.Pointer[epoch.Values] // of the tree's user; nil for none, as until OnFree, beside which sweeps may run
	Workers  int                          // how many goroutines make new shortcuts, at most; 0 is one

	renewal sync.Mutex  // held while new shortcuts are made
	bare    atomic.Bool // the limit leaves no memory for them

	batch sync.Mutex // held while a batch is applied, and by work that must not come in the middle of one
	mu    sync.Mutex // held to take all desks, or to add one
	tend  sync.Mutex // held by sweeps and counts of bytes, which are at desks and no writers; comes before the locks of desks
	desks atomic.Pointer[[]*desk]

	// The fields below change only while all desks are taken.
	work    *top      // the one that writers change: top, or that of a fork
	forked  bool      // it is that of a fork
	age     uint32    // of nodes that are made now
	frozen  uint32    // nodes of this age or less must not be changed
	moments []*moment // the oldest first
	ending  []*moment // closed, and not all of their nodes are handed over

	handing sync.Mutex // held to hand over nodes, at a desk
}

// top is where a tree begins: like a node with one link.
type top struct {
	word uint32
	link link
}

// Bits of a word. The sequence number is above them.
const (
	locked  = 1
	dead    = 2
	nextSeq = 4
)

// SetLimit sets how many bytes the tree takes at most; 0 is no limit. It may take more
// already: then no change gets more memory until deletions have made room. Nobody may
// write meanwhile.
func (t *Tree) SetLimit(bytes int64) { t.limit.Store(bytes) }

// New returns an empty tree that takes at most limit bytes; 0 is no limit.
func New(limit int64) *Tree {
	t := &Tree{memory: newMemory(), age: 1}
	t.limit.Store(limit)
	t.hold = epoch.NewHold(t.memory.release)
	t.Start(t.sweep, t.turn)
	t.work = &t.top
	t.addDesk().mu.Unlock()
	return t
}

// OnFree sets the function that is called with the values given to Retire, once
// no reader can see them any more.
func (t *Tree) OnFree(f func(vals []uint64)) {
	t.values.Store(epoch.NewValues(&t.Clock, f))
}

// OnOver sets the function that is called when the memory of the tree and of all its snapshots
// is given back. OnFree comes before.
func (t *Tree) OnOver(f func()) { t.values.Load().OnOver(f) }

// Newest returns the epoch of the newest snapshot, and 0 if there is none, in a tree with OnFree.
func (t *Tree) Newest() uint64 { return t.values.Load().Newest() }

// Beside sets the function that returns the bytes of the tree's user that count against the
// limit. It is called before the tree is used by others.
func (t *Tree) Beside(f func() int64) { t.beside = f }

// besides returns the bytes that count against the limit, beside those of nodes.
func (t *Tree) besides() int64 {
	n := t.short.Load().Bytes()
	if t.beside != nil {
		n += t.beside()
	}
	return n
}

// Bytes returns the memory of nodes, shortcuts and long keys, those of snapshots included.
// It is exact if no writer runs meanwhile and no new shortcuts are made; otherwise it includes
// the writers' stocks.
func (t *Tree) Bytes() int64 {
	t.tryUnstock()
	for {
		s := t.short.Load()
		if n := t.inUse() + s.Bytes(); t.short.Load() == s { // else they were never there together
			return n
		}
	}
}

// key returns the key of a leaf, in the memory of the tree.
func (m *memory) key(l link) string {
	if !l.isLeaf() { // a late reader's
		return ""
	}
	x := l.leaf()
	n := x.length()
	if n == longLength {
		return m.long.get((*longLeaf)(unsafe.Pointer(x)).handle)
	}
	return bytesAt(unsafe.Add(unsafe.Pointer(x), headBytes), n)
}

// Get returns the value of key, and reports whether there is one.
func (t *Tree) Get(key string) (val uint64, ok bool) {
	t.rw.RLock()
	val, ok = t.getOne(key)
	t.rw.RUnlock()
	t.edges.AcquireString(key)
	return val, ok
}

func (t *Tree) getOne(key string) (val uint64, ok bool) {
	gen := t.Gen()
	s := t.short.Load()
	if l, entered := s.Enter(key); entered {
		l, good := descend(link(l), key)
		stall.At("radix: leaf found by a shortcut")
		if val, ok, sure := t.valueBy(s, l, key); good && sure && t.Current(gen) {
			return val, ok
		}
	}
	return t.getFromRoot(key)
}

// valueBy is valueOf for a leaf that a shortcut has led to. sure reports whether
// that is the answer.
func (t *Tree) valueBy(s *shortcut.Table, l link, key string) (val uint64, ok, sure bool) {
	if !l.isLeaf() {
		return 0, false, false
	}
	other := t.key(l)
	if other == key {
		return atomic.LoadUint64(&l.leaf().value), true, true
	}
	return 0, false, s.Proves(key, other)
}

func (t *Tree) getFromRoot(key string) (val uint64, ok bool) {
	for try := 0; ; try++ {
		gen := t.Gen()
		l, good := descend(load(&t.top.link), key)
		stall.At("radix: leaf found")
		if good {
			if val, ok = t.valueOf(l, key); t.Current(gen) {
				return val, ok
			}
		}
		if t.Closed() {
			return 0, false
		}
		simd.Wait(try)
	}
}

// descend returns the leaf that the bytes of a key lead to from a link on, and false
// if it has met a node that is being changed, or is no longer part of the tree.
func descend(l link, key string) (leaf link, ok bool) {
	for l.isInner() {
		next, ok := through(l, key)
		if !ok {
			return 0, false
		}
		l = next
	}
	return l, true
}

// through returns the link of an inner node that the bytes of a key lead to, and
// false if the node is being changed, or is no longer part of the tree.
func through(l link, key string) (next link, ok bool) {
	h := l.header()
	word := h.load()
	if d := int(h.depth); d < len(key) {
		if at := findIn(unsafe.Pointer(h), l.kind(), key[d]); at != nil {
			next = load(at)
		}
	} else if d == len(key) {
		next = load(&h.own)
	}
	stall.At("radix: link read")
	if mutant.On && mutant.Is("radix: version") {
		return next, true
	}
	return next, word&(locked|dead) == 0 && h.load() == word
}

// valueOf returns the value of a leaf, if it is that of a key.
func (t *Tree) valueOf(l link, key string) (val uint64, ok bool) {
	if !l.isLeaf() || t.key(l) != key {
		return 0, false
	}
	return atomic.LoadUint64(&l.leaf().value), true
}

// Close gives the memory of the tree back, but for the memory that its
// snapshots need. A second Close does nothing.
func (t *Tree) Close() {
	t.batch.Lock()
	defer t.batch.Unlock()
	t.lockWrite()
	defer t.unlockWrite()
	if !t.End() {
		return
	}
	t.setShort(nil)
	t.releaseIfOver()
}
