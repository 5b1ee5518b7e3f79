package index

import (
	"encoding"
	"errors"
	"reflect"
	"unsafe"
)

// Codec writes values to a file and reads them back.
type Codec struct {
	Type   reflect.Type // of the values
	Encode func(dst []byte, v unsafe.Pointer) ([]byte, error)
	Decode func([]byte) (unsafe.Pointer, error) // to Go memory of the value's own
	plain  bool                                 // a value is bare, and written as it is: Encode takes any
}

// DefaultCodec returns the codec of a type whose values hold pointers and say
// themselves how they are written: strings, slices of bytes, and types that
// marshal themselves. It returns nil for any other.
func DefaultCodec(v *ValueType) *Codec {
	switch t := v.typ; {
	case v.free:
		return nil
	case t.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) || t.Implements(reflect.TypeFor[encoding.BinaryAppender]()):
		return marshaling(t)
	case v.bare == bareString:
		return &Codec{
			plain:  true,
			Type:   t,
			Encode: func(dst []byte, v unsafe.Pointer) ([]byte, error) { return append(dst, *(*string)(v)...), nil },
			Decode: func(b []byte) (unsafe.Pointer, error) { s := string(b); return unsafe.Pointer(&s), nil },
		}
	case v.bare == bareSlice:
		return &Codec{
			plain:  true,
			Type:   t,
			Encode: func(dst []byte, v unsafe.Pointer) ([]byte, error) { return append(dst, *(*[]byte)(v)...), nil },
			Decode: func(b []byte) (unsafe.Pointer, error) { return unsafe.Pointer(&b), nil },
		}
	}
	return nil
}

// marshaling returns the codec of a type that marshals itself, nil if it cannot
// unmarshal itself: it is a pointer to a type that does both, or a pointer to it
// unmarshals.
func marshaling(t reflect.Type) *Codec {
	c := &Codec{Type: t, Encode: func(dst []byte, v unsafe.Pointer) ([]byte, error) { return marshal(dst, reflect.NewAt(t, v).Elem()) }}
	unmarshaler := reflect.TypeFor[encoding.BinaryUnmarshaler]()
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler) && t.Kind() != reflect.Pointer:
		c.Decode = func(b []byte) (unsafe.Pointer, error) {
			v := reflect.New(t)
			err := v.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
			return v.UnsafePointer(), err
		}
	case t.Kind() == reflect.Pointer && t.Implements(unmarshaler):
		c.Decode = func(b []byte) (unsafe.Pointer, error) {
			to, v := reflect.New(t), reflect.New(t.Elem())
			*(*unsafe.Pointer)(to.UnsafePointer()) = v.UnsafePointer() // Set would link the code that calls functions by reflection
			err := v.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
			return to.UnsafePointer(), err
		}
	default:
		return nil
	}
	return c
}

var errNil = errors.New("it is nil, which cannot marshal itself; give the option Values a codec that can write it")

// marshal appends a value that marshals itself.
func marshal(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return dst, errNil
	}
	if a, ok := v.Interface().(encoding.BinaryAppender); ok {
		return a.AppendBinary(dst)
	}
	b, err := v.Interface().(encoding.BinaryMarshaler).MarshalBinary()
	return append(dst, b...), err
}

// encode appends value i to dst.
func (c *Codec) encode(dst []byte, i int, v unsafe.Pointer) ([]byte, error) {
	dst, err := c.Encode(dst, v)
	if err != nil {
		return dst, Problem(ErrValues, "value %d cannot be written: %w", i, err)
	}
	return dst, nil
}
