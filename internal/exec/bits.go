package exec

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// countBits counts the bits set; len(b) is a multiple of 4.
func countBits(b []byte) (n int) {
	for ; len(b) >= 4; b = b[4:] {
		n += bits.OnesCount32(binary.LittleEndian.Uint32(b))
	}
	return n
}

// SpreadBits sets a bool for each bit, eight at a time, and counts them.
func SpreadBits(dst []bool, b []byte) (n int) {
	for len(dst) >= 8 {
		*(*uint64)(unsafe.Pointer(unsafe.SliceData(dst))) = spread[b[0]]
		n += bits.OnesCount8(b[0])
		dst, b = dst[8:], b[1:]
	}
	for i := range dst {
		dst[i] = b[0]>>i&1 == 1
		n += int(b[0] >> i & 1)
	}
	return n
}

// spread holds, for each byte, eight bytes of 0 or 1, first bit first.
var spread = func() (t [256]uint64) {
	for v := range t {
		var eight [8]byte
		for i := range eight {
			eight[i] = byte(v >> i & 1)
		}
		t[v] = binary.NativeEndian.Uint64(eight[:])
	}
	return t
}()
