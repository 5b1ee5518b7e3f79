package pando

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Freeze builds an index of keys and their values. The keys need not be
// sorted; input that is sorted already builds faster. Nothing is kept of the
// slices. Where V takes no memory (struct{}), vals may be nil.
func Freeze[K Key, V any](keys []K, vals []V, opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	var v V
	if len(keys) != len(vals) && (vals != nil || unsafe.Sizeof(v) > 0) {
		return nil, fmt.Errorf("%w: %d keys, %d values", ErrLength, len(keys), len(vals))
	}
	val := index.ValueTypeOf[V]()
	codec, err := codecOf(val, c)
	if err != nil {
		return nil, err
	}
	ix, err := index.Build(order.KeysOf(keys), index.KeyTypeOf[K](), index.ColumnOf(vals), val, c.index(), codec)
	if err != nil {
		return nil, translate(err)
	}
	return frozen[K, V](ix), nil
}

// firstPairs is the pairs that FreezeSeq has room for at first.
const firstPairs = 64

// FreezeSeq builds an index of the pairs of a sequence, which need not be
// sorted. It gathers them in slices first: Freeze needs less memory.
func FreezeSeq[K Key, V any](pairs iter.Seq2[K, V], opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	var keys []K
	var vals []V
	for k, v := range pairs {
		if len(keys) == cap(keys) {
			keys, vals = par.Grow(keys, firstPairs), par.Grow(vals, firstPairs)
		}
		keys, vals = append(keys, k), append(vals, v)
		if len(keys)%1024 == 0 && c.context != nil && c.context.Err() != nil {
			break // Freeze says why
		}
	}
	return Freeze(keys, vals, opts...)
}
