package pandoarrow

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

var (
	// ErrType means that an Arrow type does not match the Go type.
	ErrType = errors.New("pandoarrow: types do not match")
	// ErrNull means that a column has nulls where it must not.
	ErrNull = errors.New("pandoarrow: null")
)

// class is how values are represented in memory.
type class uint8

const (
	other class = iota
	signed
	unsigned
	float
	text
	boolean
)

// classOf returns the class and the width in bytes of a Go type.
func classOf[T any]() (class, int) { return classOfType(reflect.TypeFor[T]()) }

func classOfType(t reflect.Type) (class, int) {
	width := int(t.Size())
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return signed, width
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return unsigned, width
	case reflect.Float32, reflect.Float64:
		return float, width
	case reflect.String:
		return text, 0
	case reflect.Bool:
		return boolean, 0
	}
	return other, 0
}

// arrowClass returns the class and the width in bytes of an Arrow type.
func arrowClass(t arrow.DataType) (class, int) {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64,
		arrow.TIMESTAMP, arrow.DURATION:
		return signed, t.(arrow.FixedWidthDataType).BitWidth() / 8
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return unsigned, t.(arrow.FixedWidthDataType).BitWidth() / 8
	case arrow.FLOAT32, arrow.FLOAT64:
		return float, t.(arrow.FixedWidthDataType).BitWidth() / 8
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return text, 0
	case arrow.BOOL:
		return boolean, 0
	}
	return other, 0
}

// match returns an error unless values of an Arrow type are values of a Go
// type.
func match[T any](t arrow.DataType) error { return matchType(reflect.TypeFor[T](), t) }

func matchType(of reflect.Type, t arrow.DataType) error {
	c, width := classOfType(of)
	if ac, aw := arrowClass(t); c == other || ac != c || aw != width {
		return fmt.Errorf("%w: an Arrow array of type %s has no values of Go type %s; convert it first", ErrType, t, of)
	}
	return nil
}

// view returns the values of an array as a slice. Numbers are the array's own
// memory, strings point into it; the value of a null is undefined. The slice
// is valid as long as the array is.
func view[T any](a arrow.Array) ([]T, error) {
	if d, ok := a.(*array.Dictionary); ok {
		return decode[T](d)
	}
	if err := match[T](a.DataType()); err != nil {
		return nil, err
	}
	switch c, _ := classOf[T](); c {
	case text:
		out := make([]string, a.Len())
		if err := viewText(a, out); err != nil {
			return nil, err
		}
		return recast[T](out), nil
	case boolean:
		out := make([]bool, a.Len())
		for i := range out {
			out[i] = a.(*array.Boolean).Value(i)
		}
		return recast[T](out), nil
	}
	return viewNumbers[T](a)
}

// viewNumbers returns the values of an array of numbers.
func viewNumbers[T any](a arrow.Array) ([]T, error) {
	var v T
	width, n, off := int(unsafe.Sizeof(v)), a.Len(), a.Data().Offset()
	if n == 0 {
		return nil, nil
	}
	buf := a.Data().Buffers()[1]
	if buf == nil || buf.Len() < (off+n)*width {
		return nil, fmt.Errorf("%w: an array of %d values of type %s has too small a buffer", ErrType, n, a.DataType())
	}
	raw := buf.Bytes()[off*width : (off+n)*width]
	if p := unsafe.Pointer(unsafe.SliceData(raw)); uintptr(p)%unsafe.Alignof(v) == 0 {
		return unsafe.Slice((*T)(p), n), nil
	}
	out := make([]T, n) // memory from a file or a socket that is not aligned
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), len(raw)), raw)
	return out, nil
}

// viewText sets out to the strings of an array, in place.
func viewText(a arrow.Array, out []string) error {
	switch a := a.(type) {
	case interface{ Value(int) string }:
		for i := range out {
			if a.(arrow.Array).IsValid(i) {
				out[i] = a.Value(i)
			}
		}
	case interface{ Value(int) []byte }:
		for i := range out {
			if a.(arrow.Array).IsValid(i) {
				b := a.Value(i)
				out[i] = unsafe.String(unsafe.SliceData(b), len(b))
			}
		}
	default:
		return fmt.Errorf("%w: strings of type %s cannot be read", ErrType, a.DataType())
	}
	return nil
}

// decode returns the values that the codes of a dictionary array stand for.
func decode[T any](a *array.Dictionary) ([]T, error) {
	words, err := view[T](a.Dictionary())
	if err != nil {
		return nil, err
	}
	out := make([]T, a.Len())
	for i := range out {
		if a.IsNull(i) {
			continue
		}
		code := a.GetValueIndex(i)
		if code < 0 || code >= len(words) {
			return nil, fmt.Errorf("%w: code %d is beyond its dictionary of %d words", ErrType, code, len(words))
		}
		out[i] = words[code]
	}
	return out, nil
}

// plain returns the array that an extension type is stored in.
func plain(a arrow.Array) arrow.Array {
	if x, ok := a.(array.ExtensionArray); ok {
		return plain(x.Storage())
	}
	return a
}

// plainType returns the type of the values behind extensions and dictionaries.
func plainType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return plainType(t.StorageType())
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	}
	return t
}

// isNull reports whether value i of an array is null, by itself or because its
// entry in a dictionary is.
func isNull(a arrow.Array, i int) bool {
	if a.IsNull(i) {
		return true
	}
	if d, ok := a.(*array.Dictionary); ok {
		return d.Dictionary().IsNull(d.GetValueIndex(i))
	}
	return false
}

// hasNulls reports whether any value of an array is null.
func hasNulls(a arrow.Array) bool {
	if a.NullN() > 0 {
		return true
	}
	d, ok := a.(*array.Dictionary)
	if !ok || d.Dictionary().NullN() == 0 {
		return false
	}
	for i := range a.Len() {
		if isNull(a, i) {
			return true
		}
	}
	return false
}

// recast returns a slice as one of a type with the same memory layout.
func recast[T, S any](s []S) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// ownText copies strings that are in memory of others.
func ownText(s []string) []string {
	out := slices.Clone(s)
	for i := range out {
		out[i] = strings.Clone(out[i])
	}
	return out
}
