package pando

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
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
	codec, err := codecOf[V](c)
	if err != nil {
		return nil, err
	}
	var ix *index[K, V]
	switch order.Width[K]() {
	case 32:
		ix, err = freezeFixed[K, uint32](keys, vals, c)
	case 64:
		ix, err = freezeFixed[K, uint64](keys, vals, c)
	default:
		ix, err = freezeText(keys, vals, c)
	}
	if err != nil {
		return nil, translate(err)
	}
	ix.values = codec
	ix.describe(len(keys), c)
	f := new(Frozen[K, V])
	f.live.Store(ix)
	return f, nil
}

// FreezeSeq builds an index of the pairs of a sequence, which need not be
// sorted. It gathers them in slices first: Freeze needs less memory.
func FreezeSeq[K Key, V any](pairs iter.Seq2[K, V], opts ...Option) (*Frozen[K, V], error) {
	var keys []K
	var vals []V
	for k, v := range pairs {
		keys, vals = append(keys, k), append(vals, v)
	}
	return Freeze(keys, vals, opts...)
}

// translate gives errors of the floors below their public names.
func translate(err error) error {
	for inner, public := range map[error]error{
		arena.ErrLimit:       ErrMemoryLimit,
		implicit.ErrTooLarge: ErrTooLarge,
	} {
		if errors.Is(err, inner) {
			return fmt.Errorf("%w: %w", public, err)
		}
	}
	return err
}

// inlineSize gives the bytes of a V that lives in the index: 4 or 8, and 0
// for values that live in a Go slice or take no memory at all.
func inlineSize[V any]() int {
	t := reflect.TypeFor[V]()
	if s := t.Size(); (s == 4 || s == 8) && pointerFree(t) {
		return int(s)
	}
	return 0
}

// pointerFree says whether values of a type hold nothing for the garbage
// collector to follow.
func pointerFree(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return t.Len() == 0 || pointerFree(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !pointerFree(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// gather copies values into a new slice, in the order of rows (nil: as they
// are). n is their number, also where vals is nil because a V takes no memory.
func gather[V any, R int | uint32 | uint64](vals []V, n int, rows []R) []V {
	out := make([]V, n)
	gatherTo(out, vals, rows)
	return out
}

// gatherTo copies values into a slice, in the order of rows.
func gatherTo[V any, R int | uint32 | uint64](out, vals []V, rows []R) {
	if rows == nil || vals == nil {
		copy(out, vals)
		return
	}
	for i, r := range rows {
		out[i] = vals[r]
	}
}

// recast gives a slice as one of another type with the same memory layout.
func recast[T, S any](s []S) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
