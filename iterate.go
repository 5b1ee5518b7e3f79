package pando

import (
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// All iterates over all entries in key order.
func (f *Frozen[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		f.walk(ix, 0, ix.Len(), yield)
	}
}

// Backward iterates over all entries in reverse key order.
func (f *Frozen[K, V]) Backward() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		f.walkDown(ix, 0, ix.Len(), yield)
	}
}

// Range iterates over the entries with lo <= key <= hi, in key order. There
// are none if lo is above hi. For open ends, the reverse order or the first few
// entries see Scan.
func (f *Frozen[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		first, end := ix.Span(f.probe(lo), f.probe(hi))
		f.walk(ix, first, end, yield)
	}
}

// Prefix iterates over the entries whose key starts with p, in key order: all
// of them where p is empty. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) Prefix(p K) iter.Seq2[K, V] {
	f.mustHaveStrings("Prefix")
	return func(yield func(K, V) bool) {
		ix := f.open()
		lo, hi := ix.Prefix(f.probe(p).Text)
		f.walk(ix, lo, hi, yield)
	}
}

// An iteration copies entries out window by window, the first of firstWindow
// entries so that a short one stays cheap. Up to fewEntries are read one by one:
// a window is not worth its while.
const (
	fewEntries  = 4
	firstWindow = 8
	lastWindow  = 64
)

// window is entries that an iteration has copied out, from a pool.
type window[K Key, V any] struct {
	keys [lastWindow]K
	vals [lastWindow]V
	used int // most entries that were in it
}

// window returns a window, which putWindow takes back. An iteration that is
// stopped by a panic leaves its own to the garbage collector.
func (f *Frozen[K, V]) window() *window[K, V] {
	return f.windows.Get()
}

func (f *Frozen[K, V]) putWindow(w *window[K, V]) {
	clear(w.keys[:w.used]) // what keys and values point to is not ours to keep
	clear(w.vals[:w.used])
	w.used = 0
	f.windows.Put(w)
}

// fill copies entries [lo, lo+n) out.
func (f *Frozen[K, V]) fill(w *window[K, V], ix *index.Index, lo, n int) {
	ix.CopyOut(lo, order.KeysAs(f.key.Type, w.keys[:n]), index.ColumnOf(w.vals[:n]))
	w.used = max(w.used, n)
}

// walk yields entries [i, end), which were computed from ix: if that was closed
// meanwhile they may be nonsense, and none at all.
func (f *Frozen[K, V]) walk(ix *index.Index, i, end int, yield func(K, V) bool) {
	f.done(ix)
	if end-i <= fewEntries {
		for ; i < end; i++ {
			if k, v := f.keyAt(ix, i), valAt[V](ix, i); !f.hand(ix, k, v, yield) {
				return
			}
		}
		return
	}
	w := f.window()
	for size := firstWindow; i < end; size = min(2*size, lastWindow) {
		n := min(size, end-i)
		f.fill(w, ix, i, n)
		for j := range n {
			if !f.hand(ix, w.keys[j], w.vals[j], yield) {
				f.putWindow(w)
				return
			}
		}
		i += n
	}
	f.putWindow(w)
}

// walkDown is walk from the last entry to the first.
func (f *Frozen[K, V]) walkDown(ix *index.Index, i, end int, yield func(K, V) bool) {
	f.done(ix)
	if end-i <= fewEntries {
		for end--; end >= i; end-- {
			if k, v := f.keyAt(ix, end), valAt[V](ix, end); !f.hand(ix, k, v, yield) {
				return
			}
		}
		return
	}
	w := f.window()
	for size := firstWindow; i < end; size = min(2*size, lastWindow) {
		n := min(size, end-i)
		end -= n
		f.fill(w, ix, end, n)
		for j := n - 1; j >= 0; j-- {
			if !f.hand(ix, w.keys[j], w.vals[j], yield) {
				f.putWindow(w)
				return
			}
		}
	}
	f.putWindow(w)
}

// hand yields an entry, unless the index was closed since it was read.
func (f *Frozen[K, V]) hand(ix *index.Index, k K, v V, yield func(K, V) bool) bool {
	f.done(ix)
	return yield(k, v)
}
