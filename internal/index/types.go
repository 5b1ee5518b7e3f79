package index

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"reflect"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/order"
)

// Files name the types of keys and values by kind and width, not by Go's names:
// int is int64 where it has 64 bits, and a named type counts as its underlying
// type. So a program may rename its types and still open its files.

// KeyType is a type of keys: its name in files, and how it becomes codes.
type KeyType struct {
	Name string
	order.Type
}

// KeyTypeOf returns the KeyType of K.
func KeyTypeOf[K order.Key]() KeyType {
	return KeyType{typeName(reflect.TypeFor[K](), nil), order.TypeOf[K]()}
}

// Compare compares two keys.
func (t KeyType) Compare(a, b order.Probe) int {
	if t.Bits() == 0 {
		return strings.Compare(a.Text, b.Text)
	}
	return cmp.Compare(a.Code, b.Code)
}

// keyCodeBits returns the bits of the codes of keys of a named type: 32 or 64, 0
// for strings, -1 where there is no such key type.
func keyCodeBits(name string) int {
	switch name {
	case "string":
		return 0
	case "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32":
		return 32
	case "int64", "uint64", "float64":
		return 64
	}
	return -1
}

// keyWidth returns the bits of keys of a named type of fixed width.
func keyWidth(name string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(name, "fiolantu")) // what is left of float32, int8, uint64
	return n
}

// valueName names a value type as a file holds it.
func valueName(t reflect.Type) string {
	name := typeName(t, nil)
	switch {
	case !PointerFree(t):
		name = files.Encoded + name
	case t.Size() == 0:
		name = "none"
	}
	if len(name) > files.MaxValue { // a checksum tells long names apart that start alike
		sum := crc32.ChecksumIEEE([]byte(name))
		name = fmt.Sprintf("%s...%08x", name[:files.MaxValue-16], sum)
	}
	return name
}

// typeName names a type. within lists the types around it that have a name, since a type
// may lead to itself: a struct, or a map, a slice or a pointer with no struct between.
func typeName(t reflect.Type, within []reflect.Type) string {
	if t.Name() != "" && t.Kind() != reflect.Struct {
		for i := len(within) - 1; i >= 0 && within[i].Kind() != reflect.Struct; i-- {
			if within[i] == t {
				return "..."
			}
		}
		within = append(within[:len(within):len(within)], t)
	}
	switch t.Kind() {
	case reflect.Int:
		return "int" + strconv.Itoa(t.Bits())
	case reflect.Uint, reflect.Uintptr:
		return "uint" + strconv.Itoa(t.Bits())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + typeName(t.Elem(), within)
	case reflect.Slice:
		return "[]" + typeName(t.Elem(), within)
	case reflect.Pointer:
		return "*" + typeName(t.Elem(), within)
	case reflect.Map:
		return "map[" + typeName(t.Key(), within) + "]" + typeName(t.Elem(), within)
	case reflect.Struct:
		return structName(t, within)
	}
	return t.Kind().String()
}

func structName(t reflect.Type, within []reflect.Type) string {
	for _, outer := range within {
		if outer == t {
			return "struct{...}"
		}
	}
	within = append(within[:len(within):len(within)], t)
	var fields []string
	for i := range t.NumField() {
		fields = append(fields, typeName(t.Field(i).Type, within))
	}
	return "struct{" + strings.Join(fields, ",") + "}"
}
