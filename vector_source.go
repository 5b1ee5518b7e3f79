package pando

//lint:file-ignore U1000 Vector operations ask an index for these methods as a computer.

import (
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// computer is an index that reads many values at a time. Its methods return false, and have
// done nothing, where they cannot. The values of an Index without them, as other packages
// may define, are read one by one.
type computer[K Key, V any] interface {
	summarize(lo, hi K) (index.Summary, bool)
	summarizeBatch(lo, hi []K, out []index.Summary) bool
	histogram(lo, hi K, bounds []uint64, counts []int) bool
	selectValues(lo, hi K, c index.Condition) (*Ranges[K, V], bool)
}

// Both are a computer.
func _[K Key, V any]() {
	var (
		_ computer[K, V] = (*Frozen[K, V])(nil)
		_ computer[K, V] = (*Tree[K, V])(nil)
	)
}

// oneByOne reads the values of any index.
func oneByOne[K Key, V Number](ix Index[K, V], lo, hi K) index.OneByOne {
	return func(take func(at unsafe.Pointer, n int)) {
		some := make([]V, 0, index.AtOnce)
		for _, v := range ix.Range(lo, hi) {
			if some = append(some, v); len(some) == cap(some) {
				take(unsafe.Pointer(&some[0]), len(some))
				some = some[:0]
			}
		}
		take(unsafe.Pointer(unsafe.SliceData(some)), len(some))
	}
}

func (f *Frozen[K, V]) summarize(lo, hi K) (index.Summary, bool) {
	return f.c.Summarize(f.probe(lo), f.probe(hi))
}

func (f *Frozen[K, V]) summarizeBatch(lo, hi []K, out []index.Summary) bool {
	return f.c.SummarizeBatch(f.keys(lo), f.keys(hi), out)
}

func (f *Frozen[K, V]) histogram(lo, hi K, bounds []uint64, counts []int) bool {
	return f.c.Histogram(f.probe(lo), f.probe(hi), bounds, counts)
}

func (f *Frozen[K, V]) selectValues(lo, hi K, c index.Condition) (*Ranges[K, V], bool) {
	r := new(Ranges[K, V])
	return r, f.c.Select(f.probe(lo), f.probe(hi), c, r.room)
}

// room makes memory for one range of n entries.
func (r *Ranges[K, V]) room(n int) (order.Keys, index.Column) {
	r.Keys, r.Vals, r.Offsets = make([]K, n), make([]V, n), []int{0, n}
	return order.KeysOf(r.Keys), index.ColumnOf(r.Vals)
}

func (t *Tree[K, V]) summarize(lo, hi K) (index.Summary, bool) {
	return t.c.Summarize(t.probe(lo), t.probe(hi))
}

func (t *Tree[K, V]) summarizeBatch(lo, hi []K, out []index.Summary) bool {
	return t.c.SummarizeBatch(t.keys(lo), t.keys(hi), out)
}

func (t *Tree[K, V]) histogram(lo, hi K, bounds []uint64, counts []int) bool {
	return t.c.Histogram(t.probe(lo), t.probe(hi), bounds, counts)
}

func (t *Tree[K, V]) selectValues(lo, hi K, c index.Condition) (*Ranges[K, V], bool) {
	r := new(Ranges[K, V])
	return r, t.c.Select(t.probe(lo), t.probe(hi), c, r.room)
}
