package data

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// DigitTexts returns n sorted strings of one size whose bytes have the given
// number of values, all equally likely (FAST paper, section 6.1.4). Few values
// result in equal strings: they stay.
func DigitTexts(n, size, values int, seed uint64) []string {
	leading := leadingDigits(size, values)
	end := uint64(math.Pow(float64(values), float64(leading)))
	heads := SortedKeys[uint64](n, seed)
	for i, k := range heads {
		heads[i], _ = bits.Mul64(k, end)
	}
	letters := letters(values)
	keys := FixedTexts(n, size, seed, func(dst []byte, i int, rng *rand.Rand) {
		head := heads[i]
		for at := leading - 1; at >= 0; at-- {
			dst[at], head = letters[head%uint64(values)], head/uint64(values)
		}
		for at := leading; at < size; at++ {
			dst[at] = letters[rng.IntN(values)]
		}
	})
	for i := 1; i < n; i++ { // the rare equal heads have tails in any order
		if heads[i] == heads[i-1] {
			keys[i] = keys[i-1]
		}
	}
	return keys
}

// leadingDigits returns how many bytes one number of 63 bits determines: they
// are drawn in order, and the bytes after them in any order.
func leadingDigits(size, values int) int {
	if values == 1 {
		return 0
	}
	return min(size, int(63/math.Log2(float64(values))))
}

// letters returns the bytes used: digits for 10 values, letters for 52, as in
// the paper, otherwise the numbers from 0 on.
func letters(values int) []byte {
	var out []byte
	switch values {
	case 10:
		for c := byte('0'); c <= '9'; c++ {
			out = append(out, c)
		}
	case 52:
		for c := byte('A'); c <= 'Z'; c++ {
			out = append(out, c)
		}
		for c := byte('a'); c <= 'z'; c++ {
			out = append(out, c)
		}
	default:
		for c := range values {
			out = append(out, byte(c))
		}
	}
	return out
}
