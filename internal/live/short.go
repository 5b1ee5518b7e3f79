package live

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
)

// shortReader is a tree of numbers in host memory, which reads short ranges without a
// cursor where it has the values. It is an interface because a Map that named the tree's
// type would have every package that uses a Map compile all methods of that type again.
type shortReader interface {
	// readShort reads the entries of a walk, if they are few; else it moves the walk to
	// the first.
	readShort(w *walk, from index.Edge)
}

// fewRoom is memory for the entries of a short range.
type fewRoom struct{ keys, vals [bplus.FewRoom]uint64 }

// takesShort reports whether a walk is over a range that readShort may try: upwards, from
// one key to another.
func (m *Map) takesShort(from, to index.Edge, down bool, limit int) bool {
	return m.short != nil && !down && limit == math.MaxInt && !from.None && !from.Open && !to.None && !to.Open
}

func (t *codes[C]) readShort(w *walk, from index.Edge) {
	keys, vals := (*[bplus.FewRoom]C)(unsafe.Pointer(&w.few.keys)), (*[bplus.FewRoom]C)(unsafe.Pointer(&w.few.vals))
	lo, m := C(from.Key.Code), w.m
	first, n, place, ok := t.tree.Few(lo, C(w.to.Key.Code), keys[:], vals[:])
	if !ok {
		w.cursor()
		w.c.c.(cursor[C]).MoveTo(&place, lo)
		return
	}
	w.whole, w.N, w.Guard = true, n-first, place.Guard
	w.Keys, w.Vals = entriesInPlace(m.key.Type, m.size, keys[first:n], vals[first:n])
}
