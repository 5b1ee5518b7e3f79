package bplus

import (
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// tidy merges the leaf that key belongs to with a neighbour, if both together
// are not too full, and so on while the result is thin.
func (t *Tree[C]) tidy(key C) {
	t.structure.Lock()
	defer t.structure.Unlock()
	if t.Closed() {
		return
	}
	t.tidying = true
	t.addPending()
	for t.mergeAt(key) || t.mergePending(key) {
	}
	t.tidying = false
	t.advance()
}

// mergeAt merges the leaf that key belongs to with a neighbour under the same
// parent. It reports whether it did, and the leaf is still thin.
func (t *Tree[C]) mergeAt(key C) bool {
	path := t.path(key)
	if len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	u := t.upper(last.node)
	for _, i := range []int{last.i, last.i - 1} {
		if i < 0 || i+1 >= int(u.info().children) {
			continue
		}
		a, b := u.refs()[i], u.refs()[i+1]
		if t.leaf(a).info().next != b || t.leaf(a).high() != u.seps()[i] || !mergeable[C](t.entries(a), t.entries(b)) {
			continue
		}
		stall.At("held: merge chosen")
		return t.merge(path, i, a, b)
	}
	return false
}

// mergeable reports whether leaves with a and b entries are to be merged: one
// of them is empty, or the result has room for more.
func mergeable[C Code](a, b int) bool { return a == 0 || b == 0 || a+b <= capacity[C]()*3/4 }

func (t *Tree[C]) entries(x uint32) int { return simd.Entries(t.leaf(x).loadWord()) }

// merge makes leaf a take the entries of b, its neighbour on the right. First
// the parent forgets b, whose entries are then reached by the side link; then b
// is sealed, so that it can be read but not changed; then a takes over its
// entries and its keys; then b is dead.
func (t *Tree[C]) merge(path []step, i int, a, b uint32) (again bool) {
	u := t.upper(path[len(path)-1].node)
	bound := boundary[C]{u.seps()[i], b}
	one := child[C]{u.seps()[i+1], a, u.counts()[i] + u.counts()[i+1]}
	if mutant.On && mutant.Is("parent first") {
		again = t.mergeLeaves(a, b, bound)
		return t.replace(path, i, i+2, []child[C]{one}) && again
	}
	return t.replace(path, i, i+2, []child[C]{one}) && t.mergeLeaves(a, b, bound)
}

// mergePending merges the leaf that key belongs to with a neighbour on either
// side, where no upper node knows of the right one. So a tree can be emptied even
// if there is no memory for upper nodes. It reports whether it did, and the leaf
// is still thin.
func (t *Tree[C]) mergePending(key C) bool {
	if len(t.pending) == 0 {
		return false
	}
	x, _, _ := t.seek(key)
	in := *t.leaf(x).info()
	pairs := [][2]uint32{{x, in.next}}
	if in.first == 0 {
		left, _, _ := t.seek(C(in.low))
		pairs = append(pairs, [2]uint32{left, x})
	}
	for _, p := range pairs {
		i := slices.IndexFunc(t.pending, func(b boundary[C]) bool { return b.leaf == p[1] })
		if i < 0 || t.leaf(p[0]).info().next != p[1] || !mergeable[C](t.entries(p[0]), t.entries(p[1])) {
			continue
		}
		bound := t.pending[i]
		t.pending = slices.Delete(t.pending, i, i+1)
		return t.mergeLeaves(p[0], p[1], bound)
	}
	return false
}

// mergeLeaves makes leaf a take the entries of b, which no upper node knows of.
// bound is where b begins. It reports whether it did, and a is still thin.
func (t *Tree[C]) mergeLeaves(a, b uint32, bound boundary[C]) (again bool) {
	stall.At("held: merge, parent told")
	if !mutant.On || !mutant.Is("seal") {
		t.seal(b)
	}
	stall.At("held: merge, sealed")
	t.note(StepSeal, bound.key, b, nothing)
	n, ok := t.absorb(a, b)
	stall.At("held: merge, absorbed")
	if !ok {
		t.unseal(b)
		t.pending = append(t.pending, bound)
		return false
	}
	t.note(StepAbsorb, bound.key, a, b)
	lb := t.leaf(b)
	atomic.StoreUint64(lb.word(), simd.NextWord(lb.loadWord(), t.entries(b))|simd.WordDead)
	stall.At("held: merge, dead")
	t.note(StepDead, bound.key, b, nothing)
	if !t.snapshots.keepDead(b, lb.info().born) {
		t.retire(uint64(b))
	}
	return n < thin[C]()
}

// seal makes a leaf one that can be read but not changed.
func (t *Tree[C]) seal(x uint32) {
	l := t.leaf(x)
	for try := 0; ; try++ {
		word := l.loadWord()
		if word&simd.WordBusy == 0 && atomic.CompareAndSwapUint64(l.word(), word, word|simd.WordSealed) {
			return
		}
		simd.Wait(try)
	}
}

func (t *Tree[C]) unseal(x uint32) {
	l := t.leaf(x)
	atomic.StoreUint64(l.word(), simd.NextWord(l.loadWord(), t.entries(x)))
}

// absorb adds the entries of sealed leaf b to a, which then has n. It returns
// false if they have become too many, if b is no longer next to a, or memory
// fails.
func (t *Tree[C]) absorb(a, b uint32) (n int, ok bool) {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	la, lb := t.leaf(a), t.leaf(b)
	for try := 0; ; try++ {
		gen, epoch, word := t.Gen(), t.Epoch(), la.loadWord()
		if word&simd.WordBusy != 0 {
			simd.Wait(try)
			continue
		}
		if in := la.info(); in.epoch != epoch || in.dirty == 0 {
			if t.touch(a, word, gen, epoch, new(promises)) != nil { // the limit does not bind: Pop must get on
				return 0, false
			}
			continue
		}
		n = simd.Entries(word) + t.entries(b)
		if n > capacity[C]() {
			return 0, false
		}
		s.load(la)
		s.run.clear()
		s.copy.unpack(&s.run)
		lb.unpack(&s.run)
		if la.loadWord() != word {
			continue
		}
		stall.At("held: merge, entries read")
		in := s.copy.info()
		if in.next != b && !(mutant.On && mutant.Is("neighbour")) { // a was split since it was chosen: what has come between would be lost
			return 0, false
		}
		in.next, in.counted = lb.info().next, in.counted+lb.info().counted
		s.copy.pack(s.run, lb.high())
		if t.commitCopy(la, s.copy, 0, lines, word, n, gen, epoch) {
			return n, true
		}
	}
}
