package pando

import (
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// reach is what an iteration goes through.
type reach struct {
	what   reachKind
	lo, hi order.Probe // of a range; lo is a prefix
	scan   *scan       // of a Scan
}

type reachKind uint8

const (
	reachAll reachKind = iota
	reachDown
	reachRange
	reachPrefix
	reachScan
)

// extent is a reach with the type of its keys.
type extent[K Key] struct {
	what   reachKind
	lo, hi K
	scan   *scan
}

// bare returns the extent without its type.
func (e *extent[K]) bare(t order.Type) reach {
	r := reach{what: e.what, scan: e.scan}
	if e.what == reachRange || e.what == reachPrefix {
		r.lo, r.hi = order.Encode(t, e.lo), order.Encode(t, e.hi)
	}
	return r
}

// walker is what can be iterated over.
type walker interface {
	walk(r reach) *index.Walk
	keyType() order.Type
}

// each iterates over what is in reach. Its loop is a function of its own with
// one call of yield, and whatever is not done for each entry is elsewhere: so the
// compiler makes it, and the body of the caller's loop, part of the caller.
func each[K Key, V any](of walker, e extent[K]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		w := of.walk(e.bare(of.keyType()))
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
func (f *Frozen[K, V]) All() iter.Seq2[K, V] { return each[K, V](&f.c, extent[K]{}) }

// Backward iterates over all entries in reverse key order.
func (f *Frozen[K, V]) Backward() iter.Seq2[K, V] {
	return each[K, V](&f.c, extent[K]{what: reachDown})
}

// Range iterates over the entries with lo <= key <= hi, in key order. There
// are none if lo is above hi. For open ends, the reverse order or the first few
// entries see Scan.
func (f *Frozen[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return each[K, V](&f.c, extent[K]{what: reachRange, lo: lo, hi: hi})
}

// Prefix iterates over the entries whose key starts with p, in key order: all
// of them where p is empty. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) Prefix(p K) iter.Seq2[K, V] {
	f.c.mustHaveStrings("Prefix")
	return each[K, V](&f.c, extent[K]{what: reachPrefix, lo: p})
}
