package pando

import (
	"fmt"
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Freeze builds an index of keys and their values. The keys need not be
// sorted; input that is sorted already builds faster. Nothing is kept of the
// slices. Where V takes no memory (struct{}), vals may be nil.
func Freeze[K Key, V any](keys []K, vals []V, opts ...Option) (*Frozen[K, V], error) {
	ix, err := freeze(order.KeysOf(keys), index.KeyTypeOf[K](), index.ColumnOf(vals), index.ValueTypeOf[V](), opts)
	if err != nil {
		return nil, err
	}
	return frozen[K, V](ix), nil
}

// freeze is Freeze without types.
func freeze(keys order.Keys, key index.KeyType, vals index.Column, val *index.ValueType, opts []Option) (*index.Index, error) {
	c, err := configure(freezing, opts)
	if err != nil {
		return nil, err
	}
	if keys.Len() != vals.Len() && !(val.Empty() && vals.IsNil()) {
		return nil, fmt.Errorf("%w: %d keys, %d values", ErrLength, keys.Len(), vals.Len())
	}
	codec, err := codecOf(val, c)
	if err != nil {
		return nil, err
	}
	ix, err := index.Build(keys, key, vals, val, c.index(), codec)
	return ix, failed(err)
}

// firstPairs is the number of pairs that FreezeSeq first makes room for.
const firstPairs = 64

// FreezeSeq builds an index of the pairs of a sequence, which need not be
// sorted. It gathers them in slices first: Freeze needs less memory.
func FreezeSeq[K Key, V any](pairs iter.Seq2[K, V], opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(freezing, opts)
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
