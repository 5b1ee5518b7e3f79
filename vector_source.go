package pando

import (
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// Methods of an index that vector operations use. They read the entries of an
// Index without them, as other packages may define, one by one.
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
	return f.c.values(f.probe(lo), f.probe(hi), do)
}

//lint:ignore U1000 AggregateBatch asks for it as an aggregator.
func (f *Frozen[K, V]) aggregateBatch(lo, hi []K, out []vector.Summary) bool {
	return f.c.aggregateBatch(f.keys(lo), f.keys(hi), out)
}

//lint:ignore U1000 Select asks for it as a selector.
func (f *Frozen[K, V]) selectValues(lo, hi K, c vector.Condition) (*Ranges[K, V], bool) {
	r := new(Ranges[K, V])
	return r, f.c.selectValues(f.probe(lo), f.probe(hi), c, r.room)
}

// room makes memory for one range of n entries.
func (r *Ranges[K, V]) room(n int) (order.Keys, index.Column) {
	r.Keys, r.Vals, r.Offsets = make([]K, n), make([]V, n), []int{0, n}
	return order.KeysOf(r.Keys), index.ColumnOf(r.Vals)
}

func (t *Tree[K, V]) values(lo, hi K, do func(src vector.Source, workers int)) bool {
	return t.c.values(t.probe(lo), t.probe(hi), do)
}

//lint:ignore U1000 AggregateBatch asks for it as an aggregator.
func (t *Tree[K, V]) aggregateBatch(lo, hi []K, out []vector.Summary) bool {
	return t.c.aggregateBatch(t.keys(lo), t.keys(hi), out)
}

//lint:ignore U1000 Select asks for it as a selector.
func (t *Tree[K, V]) selectValues(lo, hi K, c vector.Condition) (*Ranges[K, V], bool) {
	r := new(Ranges[K, V])
	return r, t.c.selectValues(t.probe(lo), t.probe(hi), c, r.room)
}
