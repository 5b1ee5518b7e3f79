// Package order turns keys into ordered unsigned numbers, and sorts them.
//
// Every fixed-width key type has a code, a uint32 or a uint64, such that codes
// compare as cmp.Compare compares the keys. Everything above this package (the
// layouts, the vector code, the kernels) handles codes only, so it is written
// twice rather than thirteen times.
package order

import (
	"fmt"
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

func kindOf[K Key]() kind {
	switch reflect.TypeFor[K]().Kind() {
	case reflect.String:
		return none
	case reflect.Float32, reflect.Float64:
		return floating
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return signed
	}
	return unsigned
}

// Width returns the width in bits of the code of a K: 32 or 64, or 0 for
// strings, which have no fixed-width code.
func Width[K Key]() int {
	var k K
	switch {
	case kindOf[K]() == none:
		return 0
	case unsafe.Sizeof(k) <= 4:
		return 32
	}
	return 64
}

// Codec converts keys to codes and back. The zero Codec is not usable; make
// one with NewCodec.
//
// Codes have the order and the equality of cmp.Compare on their keys: all NaNs
// have one code, below that of negative infinity, and -0 has the same code as
// 0. Codes of types narrower than 32 bits use the low bits only.
type Codec[K Key, C Code] struct {
	flip C // the sign bit of a signed K
	kind kind
}

// NewCodec returns the codec of K. It panics if C does not have Width[K] bits.
func NewCodec[K Key, C Code]() Codec[K, C] {
	var k K
	var c C
	if int(unsafe.Sizeof(c))*8 != Width[K]() {
		panic(fmt.Sprintf("order: a %T has no code of type %T", k, c))
	}
	codec := Codec[K, C]{kind: kindOf[K]()}
	if codec.kind == signed {
		codec.flip = 1 << (unsafe.Sizeof(k)*8 - 1)
	}
	return codec
}

// Identity reports whether a key's bits already are its code, so that a slice
// of keys can serve as a slice of codes.
func (c Codec[K, C]) Identity() bool {
	var k K
	var code C
	return c.kind == unsigned && unsafe.Sizeof(k) == unsafe.Sizeof(code)
}

// Encode returns the code of k.
func (c Codec[K, C]) Encode(k K) C {
	if c.kind == floating {
		return encodeFloat[K, C](k)
	}
	// The compiler knows the size of K here and keeps only one case.
	switch p := unsafe.Pointer(&k); unsafe.Sizeof(k) {
	case 1:
		return C(*(*uint8)(p)) ^ c.flip
	case 2:
		return C(*(*uint16)(p)) ^ c.flip
	case 4:
		return C(*(*uint32)(p)) ^ c.flip
	default:
		return C(*(*uint64)(p)) ^ c.flip
	}
}

// Decode returns the key whose code is code. For equal keys it always returns
// the same one: 0 and never -0, and math.NaN's NaN. Bits that no key of the
// type uses are ignored, and floating-point codes that no key has decode to
// NaN.
func (c Codec[K, C]) Decode(code C) (k K) {
	if c.kind == floating {
		return decodeFloat[K](code)
	}
	code ^= c.flip
	switch p := unsafe.Pointer(&k); unsafe.Sizeof(k) {
	case 1:
		*(*uint8)(p) = uint8(code)
	case 2:
		*(*uint16)(p) = uint16(code)
	case 4:
		*(*uint32)(p) = uint32(code)
	default:
		*(*uint64)(p) = uint64(code)
	}
	return k
}

func encodeFloat[K Key, C Code](k K) C {
	p := unsafe.Pointer(&k)
	if unsafe.Sizeof(k) == 4 {
		return C(encode32(*(*float32)(p)))
	}
	return C(encode64(*(*float64)(p)))
}

func decodeFloat[K Key, C Code](code C) (k K) {
	p := unsafe.Pointer(&k)
	if unsafe.Sizeof(k) == 4 {
		*(*float32)(p) = decode32(uint32(code))
	} else {
		*(*float64)(p) = decode64(uint64(code))
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
