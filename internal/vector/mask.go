package vector

import "math/bits"

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
