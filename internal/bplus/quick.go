package bplus

import (
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Most changes are of one line or a few, and done by one routine in assembly from
// the root to the new word: simd.PutRegular. What it leaves undone goes the long
// way: see writing, which tells, step by step, what the routine does as well.

// quick reports whether changes may take the short way: nobody wants to see
// their steps.
func (t *Tree[C]) quick() bool { return optimistic && simd.CanPut() && t.recorder.Load() == nil }

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
	p.Control, p.EpochIs, p.GenIs = &t.control, t.Epoch(), gen
	p.Keys, p.Vals, p.N, p.Dirty = unsafe.Pointer(&key), unsafe.Pointer(&val), 1, &dirty
	if last := t.tailOf(key, gen); last != nil {
		p.Root, p.GenIs = uint64(last.leaf), last.gen
	} else {
		p.Root, p.Height = t.top()
	}
	released(t, key) // whoever finds the key sees what was written before
	simd.PutRegular[C](&t.at, &p)
	if p.Done == 0 {
		return 0, false, false
	}
	acquired(t, key)
	if p.Dirtied > 0 {
		t.noteDirty(dirty)
	}
	t.count(uint32(p.Leaf), p.Added)
	return C(p.Old), p.Had == 1, true
}

// put puts pairs from i on, whose places are given, one by one: up to the first
// that takes more than a change of a few lines of its leaf, or of which so many
// belong to one leaf that it is better written anew. It returns how many.
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
		Control: &w.t.control, EpochIs: w.t.Epoch(), GenIs: w.gen,
		Keys: unsafe.Pointer(&keys[0]), Vals: unsafe.Pointer(&w.ops.Vals[i]), Places: &places[0], N: n, Dirty: &dirty[0],
	}
	simd.PutRegular[C](&w.t.at, &p)
	w.delta += p.Added
	for _, x := range dirty[:p.Dirtied] {
		w.t.noteDirty(x)
	}
	return p.Done
}
