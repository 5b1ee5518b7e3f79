package simd

import (
	"math/bits"
	"unsafe"
)

// Windows is the maximum number of windows in a program.
const Windows = 4

// MaxWindow is the last byte offset in a key at which a window may begin.
const MaxWindow = 1<<16 - 1

// Program selects the bits of a string that form its partial key: windows of 8
// bytes, and a mask for each. The first window's bits are the most
// significant; the first empty mask ends the program. Bytes past the end of a
// string count as zeros.
//
// Partial keys extracted by the same program compare as their strings do, or
// are equal, as long as the strings differ in no bit that the program skips
// before the last bit it takes.
type Program struct {
	Mask [Windows]uint64
	At   [Windows]uint16
}

// Bits returns the length of the program's partial keys in bits.
func (p *Program) Bits() (n int) {
	for _, m := range p.Mask {
		n += bits.OnesCount64(m)
	}
	return n
}

// Partial returns the partial key of a string.
func (p *Program) Partial(key string) (partial uint64) {
	for w, mask := range p.Mask {
		if mask == 0 {
			break
		}
		partial = partial<<bits.OnesCount64(mask) | compress(StringWord(key, int(p.At[w])), mask)
	}
	return partial
}

// StringWord returns the 8 bytes of a string that start at offset at, the
// first byte the most significant. Bytes past the end are zeros.
func StringWord(key string, at int) (w uint64) {
	if at+8 <= len(key) {
		k := key[at : at+8]
		return uint64(k[0])<<56 | uint64(k[1])<<48 | uint64(k[2])<<40 | uint64(k[3])<<32 |
			uint64(k[4])<<24 | uint64(k[5])<<16 | uint64(k[6])<<8 | uint64(k[7])
	}
	for i := at; i < len(key); i++ {
		w |= uint64(key[i]) << (56 - 8*(i-at))
	}
	return w
}

// compress gathers the bits of w under mask at the lower end, as PEXT does,
// one run of ones in the mask at a time.
func compress(w, mask uint64) (out uint64) {
	for done := 0; mask != 0; {
		low := bits.TrailingZeros64(mask)
		run := bits.TrailingZeros64(^(mask >> low))
		out |= w >> low & (1<<run - 1) << done
		done += run
		mask &^= (1<<run - 1) << low
	}
	return out
}

// Extract sets partial[i] to the partial key of keys[i]. It uses the program
// at programs + which[i]·stride, whose partial keys must fit in a C.
func Extract[C Code](programs unsafe.Pointer, stride int, which []int, keys []string, partial []C) {
	_, _ = which[:len(keys)], partial[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		for i, k := range keys {
			p := (*Program)(unsafe.Add(programs, which[i]*stride))
			partial[i] = C(p.Partial(k))
		}
		return
	}
	extractAsm((*byte)(programs), stride, &which[0], &keys[0], len(keys), wide[C](), bytes(&partial[0]))
}

// FetchStrings prefetches the first and the last cache line of each string.
func FetchStrings(keys []string) {
	if active != Go && len(keys) > 0 {
		fetchStringsAsm(&keys[0], len(keys))
	}
}
