package live

import (
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// short reads short ranges of numbers without a cursor: from the tree, one of the two, if
// that is in host memory alone and has the values.
type short struct {
	applies bool
	narrow  *bplus.Tree[uint32]
	wide    *bplus.Tree[uint64]
}

// fewRoom is memory for the entries of a short range.
type fewRoom struct{ keys, vals [bplus.FewRoom]uint64 }

// init finds out what the tree of a map is.
func (s *short) init(m *Map) {
	if m.boxes != nil {
		return
	}
	switch t := m.tree.(type) {
	case *codes[uint32]:
		s.narrow, s.applies = t.tree, true
	case *codes[uint64]:
		s.wide, s.applies = t.tree, true
	}
}

// takes reports whether a walk is over a range that read may try: upwards, from one key to another.
func (s *short) takes(from, to index.Edge, down bool, limit int) bool {
	return s.applies && !down && limit == math.MaxInt && !from.None && !from.Open && !to.None && !to.Open
}

// read reads the entries of a walk, if they are few; else it moves the walk to the first.
func (s *short) read(w *walk, from index.Edge) {
	k, v := unsafe.Pointer(&w.few.keys), unsafe.Pointer(&w.few.vals)
	if s.wide != nil {
		readShort(s.wide, w, from, (*[bplus.FewRoom]uint64)(k)[:], (*[bplus.FewRoom]uint64)(v)[:])
	} else {
		readShort(s.narrow, w, from, (*[bplus.FewRoom]uint32)(k)[:], (*[bplus.FewRoom]uint32)(v)[:])
	}
}

func readShort[C order.Code](t *bplus.Tree[C], w *walk, from index.Edge, keys, vals []C) {
	lo, m := C(from.Key.Code), w.m
	first, n, place, ok := t.Few(lo, C(w.to.Key.Code), keys, vals)
	if !ok {
		w.cursor()
		w.c.c.(cursor[C]).MoveTo(&place, lo)
		return
	}
	w.whole, w.N, w.Guard = true, n-first, place.Guard
	w.Keys, w.Vals = entriesInPlace(m.key.Type, m.size, keys[first:n], vals[first:n])
}
