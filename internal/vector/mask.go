package vector

import (
	"math/bits"
	"unsafe"
)

// Each calls do with each run of ones among the first n bits: where it begins, and
// how long it is. A run may come in several parts.
func (m *Mask) Each(n int, do func(first, n int)) {
	for w := 0; w*32 < n; w++ {
		left := m[w]
		for at := w * 32; left != 0; {
			skip := bits.TrailingZeros32(left)
			left >>= skip
			ones := bits.TrailingZeros32(^left)
			do(at+skip, ones)
			at += skip + ones
			left >>= ones
		}
	}
}

// Count returns the number of ones among the first n bits; behind them there
// are none.
func (m *Mask) Count(n int) (ones int) {
	for _, w := range m[:(n+31)/32] {
		ones += bits.OnesCount32(w)
	}
	return ones
}

// Compress copies those of n elements of size bytes (1, 2, 4 or 8) that have a one
// to dst, one behind the other. dst has room for as many as there are ones.
func (m *Mask) Compress(dst, src unsafe.Pointer, size, n int) {
	switch size {
	case 1:
		compress[uint8](m, dst, src, n)
	case 2:
		compress[uint16](m, dst, src, n)
	case 4:
		compress[uint32](m, dst, src, n)
	case 8:
		compress[uint64](m, dst, src, n)
	}
}

func compress[T uint8 | uint16 | uint32 | uint64](m *Mask, dst, src unsafe.Pointer, n int) {
	from, to := unsafe.Slice((*T)(src), n), unsafe.Slice((*T)(dst), m.Count(n))
	at := 0
	for w := 0; w*32 < n; w++ {
		for left := m[w]; left != 0; left &= left - 1 {
			to[at] = from[w*32+bits.TrailingZeros32(left)]
			at++
		}
	}
}
