package rig

import "testing"

func TestFoundBits(t *testing.T) {
	for n := 1; n < 100; n++ {
		bits := make([]uint32, BitBytes(n)/4)
		for i := range n {
			bits[i/32] |= 1 << (i % 32)
		}
		if err := AllSet(0, bits, n); err != nil {
			t.Fatalf("%d bits: %v", n, err)
		}
		for i := range 32 * len(bits) {
			bits[i/32] ^= 1 << (i % 32)
			if AllSet(0, bits, n) == nil || i >= 32 && AllSet(1, bits[1:], n) == nil {
				t.Errorf("%d bits: bit %d is wrong and nobody says so", n, i)
			}
			bits[i/32] ^= 1 << (i % 32)
		}
	}
}
