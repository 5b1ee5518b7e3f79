package pando

import (
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
)

// Values says how values are written to a file and read back. Most need no word:
// values without pointers are written as they lie in memory, strings and slices
// of bytes as their bytes (so that a nil slice comes back as an empty one), and
// values that implement encoding.BinaryAppender or BinaryMarshaler, and
// BinaryUnmarshaler, by their own methods: time.Time, netip.Addr and *url.URL,
// say. Values is needed for all others that hold pointers (structs with strings,
// maps and the like), by Freeze for an index that is to be saved and by Open. It
// goes before the type's own methods, but is not asked for values without
// pointers.
//
// encode appends a value to dst and returns the result, as append does. For the
// same value it must return the same bytes every time. decode returns the value
// again; the bytes are its own, to keep or change. Values are decoded when they
// are asked for, one at a time, by as many goroutines as ask. For lists of words:
//
//	pando.Values(
//		func(dst []byte, v []string) []byte { return append(dst, strings.Join(v, " ")...) },
//		func(b []byte) ([]string, error) { return strings.Fields(string(b)), nil },
//	)
//
// A value that decode refuses makes the method that asked for it panic: the
// file is damaged, or was written with another codec.
func Values[V any](encode func(dst []byte, v V) []byte, decode func([]byte) (V, error)) Option {
	return func(c *config) {
		codec := &index.Codec{Type: reflect.TypeFor[V]()}
		if encode != nil {
			codec.Encode = func(dst []byte, v unsafe.Pointer) ([]byte, error) { return encode(dst, *(*V)(v)), nil }
		}
		if decode != nil {
			codec.Decode = func(b []byte) (unsafe.Pointer, error) {
				v, err := decode(b)
				return unsafe.Pointer(&v), err
			}
		}
		c.Values, c.Given = codec, c.Given|index.OptValues
	}
}
