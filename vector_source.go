package pando

import (
	"cmp"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// What vector operations ask of an index, if it has it. Of any other they read
// the entries one by one: an Index may be somebody else's.
type (
	// valued reads many values at a time: it calls do, or returns false.
	valued[K Key] interface {
		values(lo, hi K, do func(src vector.Source, workers int)) bool
	}
	// aggregator sums up many ranges, or returns false.
	aggregator[K Key] interface {
		aggregateBatch(lo, hi []K, out []vector.Summary) bool
	}
	// selector selects entries by value, or returns false.
	selector[K Key, V any] interface {
		selectValues(lo, hi K, c vector.Condition) (*Ranges[K, V], bool)
	}
)

// withValues calls do with the values of a range.
func withValues[K Key, V Number](ix Index[K, V], lo, hi K, do func(src vector.Source, t vector.Type, workers int)) {
	t := numberType[V]()
	if many, ok := ix.(valued[K]); ok && many.values(lo, hi, func(src vector.Source, workers int) { do(src, t, workers) }) {
		return
	}
	do(&oneByOne[K, V]{ix, lo, hi}, t, 1)
}

// oneByOne reads the values of any index.
type oneByOne[K Key, V Number] struct {
	ix     Index[K, V]
	lo, hi K
}

func (s *oneByOne[K, V]) Pieces() int { return 1 }

func (s *oneByOne[K, V]) Read(_ int, r *vector.Reader) {
	some := make([]V, 0, vector.Block)
	for _, v := range s.ix.Range(s.lo, s.hi) {
		if some = append(some, v); len(some) == cap(some) {
			r.Take(unsafe.Pointer(&some[0]), len(some))
			some = some[:0]
		}
	}
	r.Take(unsafe.Pointer(unsafe.SliceData(some)), len(some))
}

func (f *Frozen[K, V]) values(lo, hi K, do func(src vector.Source, workers int)) bool {
	ix := f.open()
	first, end := f.span(ix, lo, hi)
	src, ok := ix.Entries(first, end)
	if ok {
		do(src, ix.Workers())
	}
	f.done(ix)
	return ok
}

// span returns the entries [first, end) with lo <= key <= hi: some of those there
// are, even while the index is being closed.
func (f *Frozen[K, V]) span(ix *index.Index, lo, hi K) (first, end int) {
	if cmp.Compare(lo, hi) > 0 {
		return 0, 0
	}
	first, end = ix.Span(f.probe(lo), f.probe(hi))
	end = min(max(end, 0), ix.Len())
	return min(max(first, 0), end), end
}

//lint:ignore U1000 AggregateBatch asks for it as an aggregator.
func (f *Frozen[K, V]) aggregateBatch(lo, hi []K, out []vector.Summary) bool {
	ix := f.open()
	ok := ix.SummarizeRanges(order.KeysAs(f.key.Type, lo), order.KeysAs(f.key.Type, hi), out)
	f.done(ix)
	return ok
}

//lint:ignore U1000 Select asks for it as a selector.
func (f *Frozen[K, V]) selectValues(lo, hi K, c vector.Condition) (*Ranges[K, V], bool) {
	ix := f.open()
	first, end := f.span(ix, lo, hi)
	if _, ok := ix.Entries(first, end); !ok {
		return nil, false
	}
	r := &Ranges[K, V]{}
	room := func(n int) (order.Keys, index.Column) {
		r.Keys, r.Vals, r.Offsets = make([]K, n), make([]V, n), []int{0, n}
		return order.KeysAs(f.key.Type, r.Keys), index.ColumnOf(r.Vals)
	}
	if parts, ok := ix.SelectMoment(first, end, c); ok {
		f.done(ix)
		index.CopySelected(parts, ix.ValueType(), room)
		return r, true
	}
	found := ix.Match(first, end, c)
	f.done(ix)
	keys, vals := room(found.Len())
	ix.CopyMatches(found, keys, int(unsafe.Sizeof(lo)), vals)
	f.done(ix)
	return r, true
}

func (t *Tree[K, V]) values(lo, hi K, do func(src vector.Source, workers int)) bool {
	m := t.open()
	src, ok := m.Entries(t.probe(lo), t.probe(hi), m.Workers())
	if ok {
		do(src, m.Workers())
	}
	t.done()
	return ok
}

//lint:ignore U1000 AggregateBatch asks for it as an aggregator.
func (t *Tree[K, V]) aggregateBatch(lo, hi []K, out []vector.Summary) bool {
	m := t.open()
	if m.SummarizeRanges(len(lo), func(i int) (from, to order.Probe) { return t.probe(lo[i]), t.probe(hi[i]) }, out) {
		t.done()
		return true
	}
	if len(lo) < m.Workers() { // better one after the other, each on all workers
		return false
	}
	if _, ok := m.Entries(order.Probe{}, order.Probe{}, 1); !ok {
		return false
	}
	typ := index.NumberType(t.val.Type())
	par.Run(m.Workers(), len(lo), par.Func(func(i int) {
		src, _ := m.Entries(t.probe(lo[i]), t.probe(hi[i]), 1)
		out[i] = vector.Summarize(src, typ, 1)
	}))
	t.done()
	return true
}

//lint:ignore U1000 Select asks for it as a selector.
func (t *Tree[K, V]) selectValues(lo, hi K, c vector.Condition) (*Ranges[K, V], bool) {
	m := t.open()
	if _, ok := m.Entries(t.probe(lo), t.probe(hi), 1); !ok {
		return nil, false
	}
	r := &Ranges[K, V]{}
	index.CopySelected(m.Select(t.probe(lo), t.probe(hi), c), t.val, func(n int) (order.Keys, index.Column) {
		r.Keys, r.Vals, r.Offsets = make([]K, n), make([]V, n), []int{0, n}
		return order.KeysAs(t.key.Type, r.Keys), index.ColumnOf(r.Vals)
	})
	t.done()
	return r, true
}
