package pandoarrow

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando"
)

// TreeOf returns a tree of a column of keys and a column of values, as pando.TreeOf
// does of slices; of equal keys the last wins. vals may be nil if V is struct{}. Errors
// are those of Freeze. The tree keeps nothing of the columns. Get, GetAs, Rank, Range
// and all other functions here that take an index take a tree.
func TreeOf[K pando.Key, V any](keys, vals Column, opts ...pando.Option) (*pando.Tree[K, V], error) {
	k, v, err := pairs[K, V](keys, vals, false)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, adviceOn(err, "pando.NewTree and SetBatchValid leave such rows out"))
	}
	return pando.TreeOf(k, v, opts...)
}

// SetBatch sets the values of many keys, as Tree.SetBatch does; of equal keys the last
// wins. vals may be nil if V is struct{}. A null in either column results in ErrNull, a
// type that does not match in ErrType, and columns of different lengths in
// pando.ErrLength; then nothing was changed. The tree keeps nothing of the columns.
func SetBatch[K pando.Key, V any](t *pando.Tree[K, V], keys, vals Column) error {
	return setBatch(t, keys, vals, false)
}

// SetBatchValid is SetBatch for the rows that have neither a null key nor a null value.
func SetBatchValid[K pando.Key, V any](t *pando.Tree[K, V], keys, vals Column) error {
	return setBatch(t, keys, vals, true)
}

func setBatch[K pando.Key, V any](t *pando.Tree[K, V], keys, vals Column, skip bool) error {
	k, v, err := pairs[K, V](keys, vals, skip)
	if err != nil {
		return fmt.Errorf("%w%s", err, adviceOn(err, "SetBatchValid leaves such rows out"))
	}
	if vals == nil && reflect.TypeFor[V]().Size() == 0 {
		v = make([]V, len(k))
	}
	return t.SetBatch(k, v)
}

// DeleteBatch deletes the entries of many keys, as Tree.DeleteBatch does, and returns
// how many there were. Null keys are in no tree. A type that does not match results in
// ErrType; then nothing was deleted.
func DeleteBatch[K pando.Key, V any](t *pando.Tree[K, V], keys Column) (deleted int, err error) {
	if keys == nil {
		return 0, nil
	}
	if err := matchProbe[K](plainType(keys.DataType())); err != nil {
		return 0, err
	}
	nulls := make([]bool, keys.Len())
	k, err := gather[K](keys, nulls, "keys", true)
	if err != nil {
		return 0, err
	}
	return t.DeleteBatch(without(k, nulls), nil), nil
}
