package index

import (
	"encoding"
	"errors"
	"reflect"
	"unsafe"
)

// Codec writes values to a file and reads them back.
type Codec[V any] struct {
	Encode func(dst []byte, v V) ([]byte, error)
	Decode func([]byte) (V, error)
}

// DefaultCodec returns the codec of a type whose values hold pointers and say
// themselves how they are written: strings, slices of bytes, and what marshals
// itself. It returns nil for any other.
func DefaultCodec[V any]() *Codec[V] {
	t := reflect.TypeFor[V]()
	switch {
	case PointerFree(t):
		return nil
	case t.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) || t.Implements(reflect.TypeFor[encoding.BinaryAppender]()):
		return marshaling[V](t)
	case t.Kind() == reflect.String:
		return &Codec[V]{
			Encode: func(dst []byte, v V) ([]byte, error) { return append(dst, *(*string)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v V, err error) { *(*string)(unsafe.Pointer(&v)) = string(b); return v, nil },
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &Codec[V]{
			Encode: func(dst []byte, v V) ([]byte, error) { return append(dst, *(*[]byte)(unsafe.Pointer(&v))...), nil },
			Decode: func(b []byte) (v V, err error) { *(*[]byte)(unsafe.Pointer(&v)) = b; return v, nil },
		}
	}
	return nil
}

// marshaling returns the codec of a type that marshals itself, nil if it cannot
// unmarshal itself: V is a pointer to what does both, or a *V unmarshals.
func marshaling[V any](t reflect.Type) *Codec[V] {
	c := &Codec[V]{Encode: marshal[V]}
	unmarshaler := reflect.TypeFor[encoding.BinaryUnmarshaler]()
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler) && t.Kind() != reflect.Pointer:
		c.Decode = func(b []byte) (v V, err error) {
			err = any(&v).(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
			return v, err
		}
	case t.Kind() == reflect.Pointer && t.Implements(unmarshaler):
		c.Decode = func(b []byte) (V, error) {
			v := reflect.New(t.Elem()).Interface()
			err := v.(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
			return v.(V), err
		}
	default:
		return nil
	}
	return c
}

var errNil = errors.New("it is nil, which cannot marshal itself; give the option Values a codec that can write it")

// marshal appends a value that marshals itself.
func marshal[V any](dst []byte, v V) ([]byte, error) {
	if r := reflect.ValueOf(&v).Elem(); r.Kind() == reflect.Pointer && r.IsNil() {
		return dst, errNil
	}
	if a, ok := any(v).(encoding.BinaryAppender); ok {
		return a.AppendBinary(dst)
	}
	b, err := any(v).(encoding.BinaryMarshaler).MarshalBinary()
	return append(dst, b...), err
}

// encode appends value i to dst.
func (c *Codec[V]) encode(dst []byte, i int, v V) ([]byte, error) {
	dst, err := c.Encode(dst, v)
	if err != nil {
		return dst, problem(CauseValues, "value %d cannot be written: %w", i, err)
	}
	return dst, nil
}
