package pando

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando/internal/index"
)

// Values says how values are written to a file and read back. It is needed for
// values that hold pointers (strings, slices, maps and the like), by Freeze
// for an index that is to be saved and by Open; values without pointers are
// written as they lie in memory, and Values is not asked.
//
// encode appends a value to dst and returns the result, as append does. For the
// same value it must return the same bytes every time. decode returns the value
// again; the bytes are its own, to keep or change. Values are decoded when they
// are asked for, one at a time, by as many goroutines as ask. For strings:
//
//	pando.Values(
//		func(dst []byte, v string) []byte { return append(dst, v...) },
//		func(b []byte) (string, error) { return string(b), nil },
//	)
//
// A value that decode refuses makes the method that asked for it panic: the
// file is damaged, or was written with another codec.
func Values[V any](encode func(dst []byte, v V) []byte, decode func([]byte) (V, error)) Option {
	return func(c *config) { c.values = &index.Codec[V]{Encode: encode, Decode: decode} }
}

// codecOf returns the codec among the options; nil if there is none.
func codecOf[V any](c config) (*index.Codec[V], error) {
	if c.values == nil {
		return nil, nil
	}
	codec, ok := c.values.(*index.Codec[V])
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: Values is for another type than the index's, %v", ErrOption, reflect.TypeFor[V]())
	case codec.Encode == nil || codec.Decode == nil:
		return nil, fmt.Errorf("%w: Values needs both encode and decode", ErrOption)
	}
	return codec, nil
}
