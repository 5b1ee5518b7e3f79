package bplus

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Tree is a map from codes to codes that any number of goroutines may read and
// change at once.
//
// Readers take no lock and write nothing (where epoch.Optimistic is true; elsewhere a
// plain lock guards the tree). They find their way through upper nodes that do
// not change but for single references, and read a leaf between two looks at its
// word. Writers compute the new contents of a leaf from those they have read,
// and commit them if the leaf's word is still the same: see simd.Commit. So no
// goroutine holds a leaf while the scheduler can take its thread away.
//
// docs/tree.md has the protocol and the argument why it is right.
type Tree[C Code] struct {
	epoch.Clock               // first, see there
	root        atomic.Uint64 // height and number of the root node
	first       uint32        // the leftmost leaf, which is always the same
	tail        atomic.Pointer[tail]
	id          uint64
	at          simd.Regular // where nodes lie
	*memory
	hold     *epoch.Hold
	limit    atomic.Int64 // 0 is none
	beside   func() int64 // bytes of the tree's user that count, too; nil for none
	rw       epoch.Lock   // comes before all other locks but many
	edges    epoch.Edges
	counts   [stripes]stripe
	dirty    [stripes]dirtyList
	counting atomic.Bool // leaves that were noted are being counted

	// recounting is held by the goroutine that counts them. It comes before
	// structure.
	recounting sync.Mutex

	// many is held for reading by changes of many keys, which are done whole or not at
	// all: Close waits for them. It comes before all other locks.
	many sync.RWMutex

	// filling is held for reading by writers to leaves that are not part of the
	// tree yet, so that Close waits for it. It comes after structure.
	filling sync.RWMutex

	structure sync.Mutex    // guards upper nodes and the fields below; generations end under it
	limbo     epoch.Limbo   // leaves, and upper nodes with upperRef
	pending   []boundary[C] // of leaves that no upper node knows of, for want of memory
	tidying   bool          // leaves are being merged: memory for that is soon given back, and the limit does not bind

	values atomic.Pointer[epoch.Values] // of the tree's user; nil for none, as until OnFree, beside which sweeps may run

	recorder atomic.Pointer[recording[C]] // gets the changes of structure; nil for none

	snapshots history[C]
	scratches par.Pool[scratch[C]]
	cursors   par.Pool[Cursor[C]]
}

// stripes is the number of counters that writers share, each in a cache line
// of its own.
const stripes = 16

type stripe struct {
	entries atomic.Int64
	_       [56]byte
}

type dirtyList struct {
	mu     sync.Mutex
	leaves []uint32
	_      [32]byte
}

var trees atomic.Uint64

// New returns an empty tree that takes at most limit bytes; 0 is no limit.
func New[C Code](limit int64) (*Tree[C], error) {
	t := &Tree[C]{id: trees.Add(1), memory: newMemory[C]()}
	t.limit.Store(limit)
	t.hold = epoch.NewHold(t.memory.release)
	t.at = simd.Regular{
		Blocks: t.leaves.pool.Base(0), Pilots: t.leaves.pool.Base(1), Uppers: t.uppers.pool.Base(0), Distance: simd.RegularDistance,
		Leaves: uint64(t.leaves.pool.Most()),
	}
	t.scratches, t.cursors = par.NewPool[scratch[C]](), par.NewPool[Cursor[C]]()
	t.Start(t.sweep, func() { t.sweepNodes() })
	x, l, err := t.newLeaf(nil)
	if err != nil {
		return nil, err
	}
	*l.info() = info{epoch: 1, born: 1, owner: t.id, next: nothing, first: 1}
	l.pack(run[C]{}, ^C(0))
	t.revive(l, 0)
	t.first = x
	t.root.Store(uint64(x))
	return t, nil
}

func (t *Tree[C]) leaf(x uint32) leaf[C] {
	return leaf[C]{
		pilot: unsafe.Add(t.at.Pilots, uintptr(x)*uintptr(simd.RegularPilot[C]())),
		block: unsafe.Add(t.at.Blocks, uintptr(x)*simd.RegularBlock),
	}
}

func (t *Tree[C]) upper(y uint32) upper[C] {
	return upper[C]{unsafe.Add(t.at.Uppers, uintptr(y)*uintptr(simd.RegularUpper[C]()))}
}

// view returns the tree as searches take it.
func (t *Tree[C]) view() simd.Regular {
	r := t.at
	r.Root, r.Height = t.top()
	return r
}

// top returns the root, and how many levels of upper nodes there are.
func (t *Tree[C]) top() (root, height uint64) {
	word := t.root.Load()
	return word & nothing, word >> 32
}

// enter returns the generation for a change, and false if the tree was closed: a
// change that was begun before fails to commit.
func (t *Tree[C]) enter() (gen uint64, ok bool) {
	gen = t.Gen()
	return gen, !t.Closed()
}

// newLeaf returns memory for a leaf. No other goroutine has it; its word is
// locked, so that goroutines that come along by an old link leave it alone. A
// batch has been promised the leaves it needs.
func (t *Tree[C]) newLeaf(used *promises) (uint32, leaf[C], error) {
	if used != nil {
		return t.takeLeaf(used.take())
	}
	if err := t.room(int64(t.leaves.pool.SlotBytes())); err != nil {
		return 0, leaf[C]{}, err
	}
	return t.takeLeaf(false)
}

// takeLeaf is newLeaf without a look at the limit: promised, it is one of those
// that were promised.
func (t *Tree[C]) takeLeaf(promised bool) (uint32, leaf[C], error) {
	x, fresh, err := t.leaves.take(promised)
	if err != nil {
		return 0, leaf[C]{}, err
	}
	l := t.leaf(x)
	seq := max(l.loadWord()>>simd.WordSequence, fresh) + 1
	atomic.SwapUint64(l.word(), seq<<simd.WordSequence|simd.WordLocked|simd.WordDead)
	return x, l, nil
}

// revive makes a leaf that newLeaf has returned one that may be read and
// changed.
func (t *Tree[C]) revive(l leaf[C], n int) {
	atomic.StoreUint64(l.word(), simd.NextWord(l.loadWord(), n))
}

// freeLeaf gives back a leaf that no other goroutine can have seen.
func (t *Tree[C]) freeLeaf(x uint32) {
	l := t.leaf(x)
	atomic.StoreUint64(l.word(), simd.NextWord(l.loadWord(), 0)|simd.WordLocked|simd.WordDead)
	t.leaves.give(x)
}

// SetLimit sets how many bytes the tree takes at most; 0 is no limit. It may take more
// already: then no change gets more memory until deletions have made room. Nobody may
// write meanwhile.
func (t *Tree[C]) SetLimit(bytes int64) { t.limit.Store(bytes) }

// Limited reports whether there is a limit.
func (t *Tree[C]) Limited() bool { return t.limit.Load() > 0 }

// room returns an error if bytes more are over the limit.
func (t *Tree[C]) room(bytes int64) error {
	limit := t.limit.Load()
	if limit == 0 {
		return nil
	}
	if t.beside != nil {
		bytes += t.beside()
	}
	if t.Bytes()+bytes > limit {
		return op.ErrLimit
	}
	return nil
}

// Beside sets the function that returns the bytes of the tree's user that count against the
// limit. It is called before the tree is used by others.
func (t *Tree[C]) Beside(f func() int64) { t.beside = f }

// Bytes returns the memory that nodes take, old states that snapshots need
// among them.
func (t *Tree[C]) Bytes() int64 { return t.memory.bytes() }

// Len returns the number of entries. It is exact if no writer runs meanwhile.
func (t *Tree[C]) Len() int {
	n := int64(0)
	for i := range t.counts {
		n += t.counts[i].entries.Load()
	}
	return int(max(n, 0))
}

// count adds to the number of entries.
func (t *Tree[C]) count(x uint32, delta int) {
	if delta != 0 {
		t.counts[x%stripes].entries.Add(int64(delta))
	}
}

// seek returns the leaf that holds key, if the tree has it, the line of its
// block, and its word, which is not locked and not dead. The answer holds as
// long as the word is the same and the generation current.
func (t *Tree[C]) seek(key C) (x uint32, line int, word uint64) {
	for try := 0; ; try++ {
		gen, r := t.Gen(), t.view()
		x, line, word = simd.SeekRegular(&r, key)
		if mutant.On && mutant.Is("high key") {
			line = min(line, lines-1)
		}
		for line == lines && word&unread == 0 { // split: its parent does not know yet
			l := t.leaf(x)
			next := l.info().next
			stall.At("seek: side link read")
			if l.loadWord() != word || next == nothing || !t.Current(gen) { // links of memory that is used again may lead in circles
				break
			}
			x = next
			line, word = t.within(x, key)
		}
		if line < lines && (word&unread == 0 || mutant.On && mutant.Is("dead") && word&simd.WordLocked == 0) {
			return x, line, word
		}
		if t.Closed() {
			return x, 0, word
		}
		simd.Wait(try)
	}
}

// within returns the line of a leaf that key belongs to, and the leaf's word as
// it was before the line was found.
func (t *Tree[C]) within(x uint32, key C) (line int, word uint64) {
	r := t.at
	r.Root, r.Height = uint64(x), 0
	_, line, word = simd.SeekRegular(&r, key)
	return line, word
}

const unread = simd.WordLocked | simd.WordDead

// Get returns the value of key, and reports whether there is one.
func (t *Tree[C]) Get(key C) (val C, ok bool) {
	t.rw.RLock()
	val, ok = t.getOne(key)
	t.rw.RUnlock()
	t.edges.Acquire(uint64(key))
	return val, ok
}

func (t *Tree[C]) getOne(key C) (val C, ok bool) {
	for {
		gen := t.Gen()
		x, j, word := t.seek(key)
		stall.At("get: leaf found")
		l := t.leaf(x)
		val, ok = valueIn(l.line(j), key)
		stall.At("get: value read")
		same := l.loadWord() == word || mutant.On && mutant.Is("version")
		if same && t.Current(gen) || t.Closed() {
			return val, ok
		}
	}
}

// valueIn returns the value of a key in a line.
func valueIn[C Code](line []C, key C) (C, bool) {
	if i := placeIn(line, key); i >= 0 {
		return line[len(line)/2+i], true
	}
	return 0, false
}

// placeIn returns the first place of a key in a line, or -1.
func placeIn[C Code](line []C, key C) int { return slices.Index(line[:len(line)/2], key) }
