package simd

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

func TestExtractAgainstBits(t *testing.T) {
	rng := seed.Rand(t)
	var programs [40]Program
	for i := range programs {
		p := &programs[i]
		left := 64
		for w := range rng.IntN(Windows + 1) {
			p.At[w] = uint16(rng.IntN(24))
			if rng.IntN(8) == 0 {
				p.At[w] = MaxWindow
			}
			for p.Mask[w] == 0 {
				p.Mask[w] = rng.Uint64() & rng.Uint64()
			}
			for p.Mask[w] &= rng.Uint64() | 1<<rng.IntN(64); left < (&Program{Mask: [Windows]uint64{p.Mask[w]}}).Bits(); {
				p.Mask[w] &= p.Mask[w] - 1
			}
			left -= (&Program{Mask: [Windows]uint64{p.Mask[w]}}).Bits()
			if p.Mask[w] == 0 {
				break
			}
		}
	}
	var keys []string
	var which []int
	for len(keys) < 3000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		keys, which = append(keys, string(b)), append(which, rng.IntN(len(programs)))
	}
	keys, which = append(keys, strings.Repeat("x", MaxWindow)+"ab", strings.Repeat("y", MaxWindow+20)), append(which, 0, 1)
	want := make([]uint64, len(keys))
	for i, k := range keys {
		want[i] = bitByBit(&programs[which[i]], k)
	}
	for _, path := range Paths() {
		undo := Use(path)
		got, narrow := make([]uint64, len(keys)), make([]uint32, len(keys))
		Extract(unsafe.Pointer(&programs), int(unsafe.Sizeof(Program{})), which, keys, got)
		Extract(unsafe.Pointer(&programs), int(unsafe.Sizeof(Program{})), which, keys, narrow)
		FetchStrings(keys)
		for i := range keys {
			if got[i] != want[i] || narrow[i] != uint32(want[i]) {
				t.Fatalf("%v: %+v of %q is %#x, want %#x", path, programs[which[i]], keys[i], got[i], want[i])
			}
		}
		undo()
	}
}

// bitByBit extracts a partial key from a string one bit at a time.
func bitByBit(p *Program, key string) (out uint64) {
	for w := range p.Mask {
		if p.Mask[w] == 0 {
			break
		}
		for bit := range 64 {
			if p.Mask[w]<<bit>>63 == 0 {
				continue
			}
			out <<= 1
			if at := int(p.At[w]) + bit/8; at < len(key) {
				out |= uint64(key[at]>>(7-bit%8)) & 1
			}
		}
	}
	return out
}
