// Package order turns keys into ordered unsigned numbers, and sorts them.
//
// Every fixed-width key type has a code, a uint32 or a uint64, such that codes
// compare as cmp.Compare compares the keys. Everything above this package (the
// layouts, the vector code, the kernels) handles codes only, so it is written
// twice rather than thirteen times.
package order

import (
	"math"
	"reflect"
	"unsafe"
)

// Key is the constraint of all key types: those that cmp.Compare orders.
type Key interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~string
}

// Code is the type of the code of a fixed-width key.
type Code interface{ uint32 | uint64 }

// kind tells how a key's bits become its code.
type kind uint8

const (
	none     kind = iota // a string: no code
	unsigned             // the bits themselves
	signed               // the sign bit flipped
	floating             // negative numbers inverted, the others placed above them
)

// Type is a type of keys as far as codes depend on it: code that holds a Type
// needs no type parameter for the key.
type Type struct {
	kind kind
	size uint8 // bytes of a key
}

// Size returns the bytes of a key.
func (t Type) Size() int { return int(t.size) }

// TypeOf returns the Type of K.
func TypeOf[K Key]() Type {
	var k K
	t := Type{kind: unsigned, size: uint8(unsafe.Sizeof(k))}
	switch reflect.TypeFor[K]().Kind() {
	case reflect.String:
		t.kind = none
	case reflect.Float32, reflect.Float64:
		t.kind = floating
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		t.kind = signed
	}
	return t
}

// Bits returns the width of the codes: 32 or 64, and 0 for strings, which have
// no code of fixed width.
func (t Type) Bits() int {
	switch {
	case t.kind == none:
		return 0
	case t.size <= 4:
		return 32
	}
	return 64
}

// identity reports whether a key's bits already are its code, so that a slice
// of keys can serve as a slice of codes.
func (t Type) identity() bool { return t.kind == unsigned && t.size >= 4 }

// flip returns the sign bit of a signed key, else 0.
func (t Type) flip() uint64 {
	if t.kind != signed {
		return 0
	}
	return 1 << (t.size*8 - 1)
}

// Probe is one key without its type: the code of a number, or a string.
//
// Codes have the order and the equality of cmp.Compare on their keys: all NaNs
// have one code, below that of negative infinity, and -0 has the code of 0.
// Codes of types narrower than 32 bits use the low bits only.
type Probe struct {
	Code uint64
	Text string
}

// Encode returns k, which is of type t, as a Probe. It is small enough to be
// inlined for keys whose bits are their code.
func Encode[K Key](t Type, k K) Probe {
	if t.kind == unsigned {
		return Probe{Code: rawBits(k)}
	}
	return encode(t, k)
}

// rawBits returns the bits of a key of fixed width. The compiler knows the size of
// K and keeps one case.
func rawBits[K Key](k K) uint64 {
	switch at := unsafe.Pointer(&k); unsafe.Sizeof(k) {
	case 1:
		return uint64(*(*uint8)(at))
	case 2:
		return uint64(*(*uint16)(at))
	case 4:
		return uint64(*(*uint32)(at))
	default:
		return *(*uint64)(at)
	}
}

// encode is Encode for all other keys.
func encode[K Key](t Type, k K) Probe {
	at := unsafe.Pointer(&k)
	switch {
	case t.kind == none:
		return Probe{Text: *(*string)(at)}
	case t.kind == signed:
		return Probe{Code: rawBits(k) ^ t.flip()}
	case unsafe.Sizeof(k) == 4:
		return Probe{Code: uint64(encode32(*(*float32)(at)))}
	}
	return Probe{Code: encode64(*(*float64)(at))}
}

// Decode returns the key of a Probe: of all equal keys always the same, 0 and
// never -0, and math.NaN's NaN. Bits that no key of the type uses are ignored,
// and floating-point codes that no key has are NaN. Like Encode it is inlined
// for keys whose bits are their code.
func Decode[K Key](t Type, p Probe) K {
	if t.kind == unsigned {
		return keyFrom[K](p.Code)
	}
	return decode[K](t, p)
}

// keyFrom returns the key of fixed width that has some bits.
func keyFrom[K Key](code uint64) (k K) {
	switch at := unsafe.Pointer(&k); unsafe.Sizeof(k) {
	case 1:
		*(*uint8)(at) = uint8(code)
	case 2:
		*(*uint16)(at) = uint16(code)
	case 4:
		*(*uint32)(at) = uint32(code)
	default:
		*(*uint64)(at) = code
	}
	return k
}

// decode is Decode for all other keys.
func decode[K Key](t Type, p Probe) (k K) {
	at := unsafe.Pointer(&k)
	switch {
	case t.kind == none:
		*(*string)(at) = p.Text
	case t.kind == signed:
		return keyFrom[K](p.Code ^ t.flip())
	case unsafe.Sizeof(k) == 4:
		*(*float32)(at) = decode32(uint32(p.Code))
	default:
		*(*float64)(at) = decode64(p.Code)
	}
	return k
}

// encode64 inverts the bits of a negative number, so that a greater magnitude
// is less, and sets the sign bit of any other, so that it is above them.
// Negative infinity becomes 1<<52 - 1, which leaves 0 free for NaN.
func encode64(f float64) uint64 {
	if f != f {
		return 0
	}
	b := math.Float64bits(f + 0) // -0 + 0 is 0
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

func decode64(c uint64) float64 {
	f := math.Float64frombits(c ^ (uint64(int64(^c)>>63) | 1<<63))
	if f != f {
		return math.NaN()
	}
	return f + 0
}

// encode32 is encode64 for 32 bits.
func encode32(f float32) uint32 {
	if f != f {
		return 0
	}
	b := math.Float32bits(f + 0)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

func decode32(c uint32) float32 {
	f := math.Float32frombits(c ^ (uint32(int32(^c)>>31) | 1<<31))
	if f != f {
		return float32(math.NaN())
	}
	return f + 0
}

// Gap is codes between others, from First to Last, that no key has.
type Gap struct{ First, Last uint64 }

// Gaps returns the codes that no key has of a type of floating-point numbers,
// by its name: those of NaNs but the one that stands for all, and of -0. Other
// types have none below their greatest code.
func Gaps(name string) []Gap {
	switch name {
	case "float64":
		least, zero, greatest := encode64(math.Inf(-1)), encode64(0), encode64(math.Inf(1))
		return []Gap{{1, least - 1}, {zero - 1, zero - 1}, {greatest + 1, math.MaxUint64}}
	case "float32":
		least, zero, greatest := encode32(float32(math.Inf(-1))), encode32(0), encode32(float32(math.Inf(1)))
		return []Gap{{1, uint64(least) - 1}, {uint64(zero) - 1, uint64(zero) - 1}, {uint64(greatest) + 1, math.MaxUint32}}
	}
	return nil
}
