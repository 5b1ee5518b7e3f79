package bplus

import (
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/simd"
)

// Most changes are of one line or a few, and done by one routine in assembly from
// the root to the new word: simd.PutRegular. Changes that it leaves undone go the
// long way: see writing, whose steps are those of the routine.

// quick reports whether changes may take the short way: no recorder is set.
func (t *Tree[C]) quick() bool { return epoch.Optimistic && simd.CanPut() && t.recorder.Load() == nil }

// quickSet sets the value of a key if that takes no more than a change of a few
// lines of its leaf.
func (t *Tree[C]) quickSet(key, val C) (old C, had, ok bool) {
	gen, open := t.enter()
	if !open || !t.quick() {
		return 0, false, false
	}
	var (
		p     simd.Puts
		dirty uint32
	)
	p.Control, p.EpochIs, p.GenIs = t.Control(), t.Epoch(), gen
	p.Keys, p.Vals, p.N, p.Dirty = unsafe.Pointer(&key), unsafe.Pointer(&val), 1, &dirty
	if last := t.tailOf(key, gen); last != nil {
		p.Root, p.GenIs = uint64(last.leaf), last.gen
	} else {
		p.Root, p.Height = t.top()
	}
	t.edges.Release(uint64(key)) // a reader that finds the key sees all writes before
	simd.PutRegular[C](&t.at, &p)
	if p.Done == 0 {
		return 0, false, false
	}
	t.edges.Acquire(uint64(key))
	if p.Dirtied > 0 {
		t.noteDirty(dirty)
	}
	t.count(uint32(p.Leaf), p.Added)
	return C(p.Old), p.Had == 1, true
}

// put puts pairs from i on, whose places are given, one by one: up to the first
// that takes more than a change of a few lines of its leaf, or from which on a
// whole run of dense pairs belongs to one leaf, which is better rewritten. It
// returns the number of pairs put.
func (w *worker[C]) put(i int, places []uint64) int {
	keys, n := w.ops.Keys[i:], len(places)
	for k := 0; k+dense <= n; k++ {
		if places[k]>>8 == places[k+dense-1]>>8 {
			n = k
		}
	}
	for n > 0 && n < len(keys) && keys[n] == keys[n-1] {
		n-- // the last one of this key counts
	}
	if n == 0 {
		return 0
	}
	var dirty [ahead]uint32
	p := simd.Puts{
		Control: w.t.Control(), EpochIs: w.t.Epoch(), GenIs: w.gen,
		Keys: unsafe.Pointer(&keys[0]), Vals: unsafe.Pointer(&w.ops.Vals[i]), Places: &places[0], N: n, Dirty: &dirty[0],
	}
	simd.PutRegular[C](&w.t.at, &p)
	w.delta += p.Added
	for _, x := range dirty[:p.Dirtied] {
		w.t.noteDirty(x)
	}
	return p.Done
}
