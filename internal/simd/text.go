package simd

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// EightAt returns the eight bytes at an address, the first the least significant.
func EightAt(at unsafe.Pointer, offset uintptr) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(at, offset))[:])
}

// EightOf returns the eight bytes of a string from i on, which it must have.
func EightOf(s string, i int) uint64 {
	return EightAt(unsafe.Pointer(unsafe.StringData(s)), uintptr(i))
}

// ByteAt returns byte i of a string, or -1 if it ends before that.
func ByteAt(s string, i int) int {
	if i < len(s) {
		return int(s[i])
	}
	return -1
}

// EqualByte returns the place of the first byte of eight that equals b, and 8 if
// there is none.
func EqualByte(eight uint64, b byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	x := eight ^ uint64(b)*low
	return bits.TrailingZeros64((x-low)&^x&high) >> 3
}

// CommonPrefix returns the number of bytes that two strings begin with alike.
func CommonPrefix(a, b string) int {
	const block = 256 // bytes of long strings are compared at a time
	n := min(len(a), len(b))
	i := 0
	for ; i+block <= n && a[i:i+block] == b[i:i+block]; i += block {
	}
	for ; i+8 <= n; i += 8 {
		if x := EightOf(a, i) ^ EightOf(b, i); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}
