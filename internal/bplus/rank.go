package bplus

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Upper nodes know how many entries are below each of their children, as of the
// last count. A leaf that is changed is noted, once; the next count adds the
// changes of the noted leaves to the nodes above them. So writers pay next to
// nothing, and a count costs as much as there are leaves that have changed.

// recount brings the counts of upper nodes up to date.
func (t *Tree[C]) recount() {
	t.recounting.Lock()
	defer t.recounting.Unlock()
	t.counting.Store(true) // before the lists look as if all were counted
	defer t.counting.Store(false)
	for i := range t.dirty {
		d := &t.dirty[i]
		d.mu.Lock()
		list := d.leaves
		d.leaves = nil
		d.mu.Unlock()
		for len(list) > 0 {
			n := min(len(list), recountPiece)
			if t.recountLeaves(list[:n]); t.Closed() {
				return
			}
			list = list[n:]
		}
	}
}

// recountPiece is the number of leaves that are counted before others may change the
// structure: some 0.1 ms. Experiment waits.
const recountPiece = 128

// recountLeaves recounts some leaves.
func (t *Tree[C]) recountLeaves(list []uint32) {
	t.structure.Lock()
	defer t.structure.Unlock()
	if t.Closed() { // which it does not become while the structure is locked
		return
	}
	for _, x := range list {
		t.recountLeaf(x)
	}
}

// recountLeaf adds the change of a leaf's count to the nodes above it. The leaf
// may be dead by now, or even another tree's, or its memory may be one that a
// split is filling.
func (t *Tree[C]) recountLeaf(x uint32) {
	l := t.leaf(x)
	for try := 0; ; try++ {
		gen, epoch, word := t.Gen(), t.Epoch(), l.loadWord()
		var line [simd.LineBytes / 8]uint64
		in := (*info)(unsafe.Pointer(&line))
		*in = *l.info()
		if word&simd.WordDead != 0 || in.owner != t.id {
			return
		}
		stall.At("held: recount, leaf read")
		if word&simd.WordBusy == 0 && l.loadWord() == word {
			n := simd.Entries(word)
			delta := int64(n) - int64(in.counted)
			key := C(in.low) + 1
			if in.first == 1 {
				key = 0
			}
			if at, _, _ := t.seek(key); at != x && !(mutant.On && mutant.Is("counted leaf is in the tree")) { // not part of the tree yet: whoever makes it so notes it
				return
			}
			in.counted, in.dirty = uint32(n), 0
			c := t.changeOf(l, word, n, gen, epoch)
			c.Dst[0], c.Src[0], c.Lines[0] = unsafe.Pointer(l.info()), unsafe.Pointer(&line), 1
			if simd.Commit(&c) {
				for _, s := range t.path(key) {
					atomic.AddInt64(&t.upper(s.node).counts()[s.i], delta)
				}
				return
			}
		}
		simd.Wait(try)
	}
}

// Rank returns the number of entries with a key below key, or up to key where
// after is true. It is exact if no writer runs meanwhile.
func (t *Tree[C]) Rank(key C, after bool) int {
	t.refresh()
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	return t.rank(key, after)
}

// RankBatch sets ranks[i] to Rank(keys[i]), and counts the changed leaves once.
func (t *Tree[C]) RankBatch(keys []C, after bool, ranks []int) {
	t.refresh()
	t.rw.RLock()
	defer t.rw.RUnlock()
	for i, key := range keys {
		ranks[i] = t.rank(key, after)
	}
}

// refresh recounts if anything has changed since, or waits for the goroutine that
// does.
func (t *Tree[C]) refresh() {
	if t.isDirty() || t.counting.Load() {
		t.rw.Lock()
		t.recount()
		t.rw.Unlock()
	}
}

// isDirty reports whether leaves are noted.
func (t *Tree[C]) isDirty() bool {
	for i := range t.dirty {
		d := &t.dirty[i]
		d.mu.Lock()
		n := len(d.leaves)
		d.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// rank returns a rank by the counts as they are.
func (t *Tree[C]) rank(key C, after bool) int {
	for {
		gen, n, r := t.Gen(), int64(0), t.view()
		x := uint32(r.Root)
		for range r.Height {
			u := t.upper(x)
			i := below(u.seps()[:], key)
			for _, c := range u.counts()[:i] {
				n += c
			}
			x = atomic.LoadUint32(&u.refs()[i])
		}
		stall.At("rank: leaf found")
		in, ok := t.rankIn(x, key, after, gen)
		if ok && t.Current(gen) || t.Closed() {
			return int(n) + in
		}
	}
}

// below returns the number of separators below key, at most the last's number.
func below[C Code](seps []C, key C) int {
	n := 0
	for _, s := range seps[:len(seps)-1] {
		if s < key {
			n++
		}
	}
	return n
}

// rankIn returns the number of entries below key in the leaves from x on, which
// was found in generation gen. It returns false if that is too long ago.
func (t *Tree[C]) rankIn(x uint32, key C, after bool, gen uint64) (n int, ok bool) {
	for try := 0; ; try++ {
		l := t.leaf(x)
		word := l.loadWord()
		if word&simd.WordDead != 0 || !t.Current(gen) || t.Closed() { // links of memory that is used again may lead in circles
			return 0, false
		}
		if word&simd.WordLocked != 0 {
			simd.Wait(try)
			continue
		}
		high, next := l.high(), l.info().next
		here := simd.Entries(word)
		if high >= key {
			here = l.rank(key, after)
		}
		if l.loadWord() != word {
			continue
		}
		if n += here; high >= key || next == nothing {
			return n, true
		}
		x = next
	}
}

// rank returns the number of entries below key, or up to it, in a leaf.
func (l leaf[C]) rank(key C, after bool) (n int) {
	half := linePairs[C]()
	for j := range lines {
		lo, bounded, hi := l.lineRange(j)
		ks := l.line(j)[:half]
		m := entriesIn(ks, lo, bounded, hi)
		if hi < key {
			n += m
			continue
		}
		for _, k := range ks[:m] {
			if k < key || after && k == key {
				n++
			}
		}
		return n
	}
	return n
}

// At returns entry i in key order, by the counts. It is exact if no writer runs
// meanwhile. It returns false if there are no more than i entries.
func (t *Tree[C]) At(i int) (key, val C, ok bool) {
	t.refresh()
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	for {
		gen, left, r := t.Gen(), int64(i), t.view()
		x := uint32(r.Root)
		for range r.Height {
			u := t.upper(x)
			at, last := 0, int(u.info().children)-1
			for at < min(last, fanout-1) && left >= u.counts()[at] {
				left -= u.counts()[at]
				at++
			}
			x = atomic.LoadUint32(&u.refs()[at])
		}
		stall.At("rank: leaf found")
		key, val, ok, dead := t.atIn(x, int(left), gen)
		if !dead && t.Current(gen) || t.Closed() {
			return key, val, ok
		}
	}
}

// atIn returns entry i of the leaves from x on, which was found in generation
// gen; or that one of them is dead, or the generation too long ago.
func (t *Tree[C]) atIn(x uint32, i int, gen uint64) (key, val C, ok, dead bool) {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	for try := 0; x != nothing; try++ {
		l := t.leaf(x)
		word := l.loadWord()
		if word&simd.WordDead != 0 || !t.Current(gen) || t.Closed() {
			return 0, 0, false, true
		}
		s.run.clear()
		l.unpack(&s.run)
		next := l.info().next
		if word&simd.WordLocked != 0 || l.loadWord() != word {
			simd.Wait(try)
			continue
		}
		if i < len(s.run.keys) {
			return s.run.keys[i], s.run.vals[i], true, false
		}
		i -= len(s.run.keys)
		x = next
	}
	return 0, 0, false, false
}
