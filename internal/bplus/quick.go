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

// puts returns pairs to be put, in a generation.
func (t *Tree[C]) puts(gen uint64) simd.Puts {
	return simd.Puts{Epoch: &t.control.epoch, EpochIs: t.Epoch(), Gen: &t.control.gen, GenIs: gen}
}

// quickSet sets the value of a key if that takes no more than a change of a few
// lines of its leaf.
func (t *Tree[C]) quickSet(key, val C) (old C, had, ok bool) {
	gen, open := t.enter()
	if !open || !t.quick() {
		return 0, false, false
	}
	var dirty uint32
	p, r := t.puts(gen), t.view()
	p.Keys, p.Vals, p.N, p.Dirty = unsafe.Pointer(&key), unsafe.Pointer(&val), 1, &dirty
	last := t.tail.Load()
	inTail := last != nil && gen-last.gen <= 1 && uint64(key) > last.low
	if inTail {
		r.Root, r.Height, p.GenIs = uint64(last.leaf), 0, last.gen
	}
	released(t, key) // whoever finds the key sees what was written before
	simd.PutRegular[C](&r, &p)
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
	p, r := w.t.puts(w.gen), w.t.view()
	p.Dirty = &dirty[0]
	p.Keys, p.Vals, p.Places, p.N = unsafe.Pointer(&keys[0]), unsafe.Pointer(&w.ops.Vals[i]), &places[0], n
	simd.PutRegular[C](&r, &p)
	w.delta += p.Added
	for _, x := range dirty[:p.Dirtied] {
		w.t.noteDirty(x)
	}
	return p.Done
}
