package pando

import (
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
)

// reach is the range that an iteration goes through.
type reach[K Key] struct {
	what   index.Reach
	lo, hi K           // of a range; lo is a prefix
	scan   *index.Scan // of a Scan
}

// An iteration is a loop with one call of yield, in a function of its own, without the
// work that is not done for each entry: so the compiler inlines the loop, and the body
// of the caller's loop, into the caller. There is one for each kind of index. The word
// that the loop looks at after each entry changes if the index is closed, or the tree
// is changed there.

// each iterates over the entries of an index that are in reach.
func (f *Frozen[K, V]) each(r reach[K]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var ks [index.Few]K
		var vs [index.Few]uint64
		w, n := f.c.Walk(r.what, f.probe(r.lo), f.probe(r.hi), r.scan, unsafe.Pointer(&ks), unsafe.Pointer(&vs))
		keys, vals, i, step, word := ks[:n], []V(nil), 0, 1, f.c.Shut()
		if n > 0 {
			vals = unsafe.Slice((*V)(unsafe.Pointer(&vs)), n)
		}
		for {
			for uint(i) < uint(len(keys)) {
				if !yield(keys[i], vals[i]) {
					w.Stop()
					return
				}
				if i += step; atomic.LoadUint64(word) != 0 {
					break
				}
			}
			if !w.NextOf(&f.c, i, len(keys)) {
				return
			}
			keys, vals, i, step = unsafe.Slice((*K)(w.Keys), w.N), unsafe.Slice((*V)(w.Vals), w.N), w.At, w.Step
		}
	}
}

// each iterates over the entries of a tree that are in reach.
func (t *Tree[K, V]) each(r reach[K]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		w := t.c.Walk(r.what, t.probe(r.lo), t.probe(r.hi), r.scan)
		for w.Next() {
			keys, vals, i, step, word, was := unsafe.Slice((*K)(w.Keys), w.N), unsafe.Slice((*V)(w.Vals), w.N), w.At, w.Step, w.Guard.Word, w.Guard.Was
			for {
				if !yield(keys[i], vals[i]) {
					w.Stop()
					return
				}
				if i += step; uint(i) >= uint(len(keys)) || atomic.LoadUint64(word) != was {
					break
				}
			}
			w.At = i
		}
	}
}

// All iterates over all entries in key order.
func (f *Frozen[K, V]) All() iter.Seq2[K, V] { return f.each(reach[K]{}) }

// Backward iterates over all entries in reverse key order.
func (f *Frozen[K, V]) Backward() iter.Seq2[K, V] {
	return f.each(reach[K]{what: index.ReachDown})
}

// Range iterates over the entries with lo <= key <= hi, in key order. There
// are none if lo is above hi. For open ends, the reverse order or the first few
// entries see Scan.
func (f *Frozen[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return f.each(reach[K]{what: index.ReachRange, lo: lo, hi: hi})
}

// Prefix iterates over the entries whose key starts with p, in key order: all
// of them where p is empty. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) Prefix(p K) iter.Seq2[K, V] {
	f.c.Key.MustHavePrefixes("Prefix")
	return f.each(reach[K]{what: index.ReachPrefix, lo: p})
}
