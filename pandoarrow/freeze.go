package pandoarrow

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/pando-index/pando"
)

// Column is an arrow.Array or an *arrow.Chunked.
type Column interface {
	DataType() arrow.DataType
	Len() int
	NullN() int
}

// Freeze builds an index from a column of keys and a column of values, as
// pando.Freeze does from slices. vals may be nil if V is struct{}. A null in
// either column results in ErrNull, a type that does not match in ErrType, and
// columns of different lengths in pando.ErrLength; lengths and types are looked at before
// nulls. The index keeps nothing of the columns.
func Freeze[K pando.Key, V any](keys, vals Column, opts ...pando.Option) (*pando.Frozen[K, V], error) {
	return freeze[K, V](keys, vals, false, opts)
}

// FreezeValid is Freeze for the rows that have neither a null key nor a null
// value.
func FreezeValid[K pando.Key, V any](keys, vals Column, opts ...pando.Option) (*pando.Frozen[K, V], error) {
	return freeze[K, V](keys, vals, true, opts)
}

func freeze[K pando.Key, V any](keys, vals Column, skip bool, opts []pando.Option) (*pando.Frozen[K, V], error) {
	k, v, err := pairs[K, V](keys, vals, skip)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, adviceOn(err, "FreezeValid leaves such rows out"))
	}
	return pando.Freeze(k, v, opts...)
}

// adviceOn returns advice about nulls, if they are the error.
func adviceOn(err error, advice string) string {
	if errors.Is(err, ErrNull) {
		return "; " + advice
	}
	return ""
}

// pairs returns the keys and values of two columns, without the rows that have a null
// where skip is set. Numbers and keys may be in the columns' own memory. Errors of a
// whole column are reported before those of a row.
func pairs[K pando.Key, V any](keys, vals Column, skip bool) (k []K, v []V, err error) {
	n, err := checkColumns(keys, vals, reflect.TypeFor[K](), reflect.TypeFor[V]())
	if err != nil {
		return nil, nil, err
	}
	nulls := make([]bool, n)
	if k, err = gather[K](keys, nulls, "keys", skip); err != nil {
		return nil, nil, err
	}
	if v, err = gather[V](vals, nulls, "values", skip); err != nil {
		return nil, nil, err
	}
	if skip {
		k, v = without(k, nulls), without(v, nulls)
	}
	if c, _ := classOf[V](); c == text { // an index copies keys but keeps values as they are
		v = recast[V](ownText(recast[string](v)))
	}
	return k, v, nil
}

// checkColumns returns the number of rows of two columns, which may be nil, or an error
// unless they are as long as each other and their values are of these Go types.
func checkColumns(keys, vals Column, key, val reflect.Type) (n int, err error) {
	if keys != nil {
		n = keys.Len()
	}
	if vals != nil && vals.Len() != n {
		return 0, fmt.Errorf("%w: %d keys, %d values", pando.ErrLength, n, vals.Len())
	}
	if err := checkType(keys, key, "keys"); err != nil {
		return 0, err
	}
	return n, checkType(vals, val, "values")
}

// checkType returns an error unless the values of a column, which may be nil, are of a
// Go type.
func checkType(c Column, of reflect.Type, what string) error {
	if c == nil {
		return nil
	}
	if err := matchStoredType(of, plainType(c.DataType())); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// gather returns the values of a column as one slice, which is the column's
// own memory if it is in one piece, and marks nulls.
func gather[T any](c Column, nulls []bool, what string, skip bool) ([]T, error) {
	chunks, err := chunksOf(c)
	if err != nil {
		return nil, err
	}
	var out []T
	row := 0
	for _, a := range chunks {
		part, err := stored[T](a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if len(chunks) == 1 {
			out = part
		} else {
			out = append(out, part...)
		}
		if at := markNulls(a, nulls[row:]); at >= 0 && !skip {
			return nil, fmt.Errorf("%w: %s: row %d", ErrNull, what, row+at)
		}
		row += a.Len()
	}
	return out, nil
}

// markNulls marks the nulls of an array and returns the index of the first, -1
// if there is none.
func markNulls(a arrow.Array, nulls []bool) int {
	first := -1
	if !hasNulls(a) {
		return first
	}
	for i := range a.Len() {
		if isNull(a, i) {
			nulls[i] = true
			if first < 0 {
				first = i
			}
		}
	}
	return first
}

// chunksOf returns the arrays that make up a column.
func chunksOf(c Column) ([]arrow.Array, error) {
	switch c := c.(type) {
	case nil:
		return nil, nil
	case *arrow.Chunked:
		var chunks []arrow.Array
		for _, a := range c.Chunks() {
			chunks = append(chunks, plain(a))
		}
		return chunks, nil
	case arrow.Array:
		return []arrow.Array{plain(c)}, nil
	}
	return nil, fmt.Errorf("%w: %T is neither an arrow.Array nor an *arrow.Chunked", ErrType, c)
}

// without returns the values that are not marked, in a new slice if any are
// marked.
func without[T any](values []T, marked []bool) []T {
	left := 0
	for _, m := range marked {
		if !m {
			left++
		}
	}
	if values == nil || left == len(marked) {
		return values
	}
	out := make([]T, 0, left)
	for i, v := range values {
		if !marked[i] {
			out = append(out, v)
		}
	}
	return out
}
