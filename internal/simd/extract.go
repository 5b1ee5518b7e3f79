package simd

import (
	"math/bits"
	"unsafe"
)

// Windows is the number of windows that a program may have.
const Windows = 4

// MaxWindow is the last byte of a key at which a window may begin.
const MaxWindow = 1<<16 - 1

// Program says which bits of a string make its partial key: windows of 8
// bytes, and a mask for each. The first window's bits are the upper ones; the
// first empty mask ends the program. What is behind a string's end is zeros.
//
// Partial keys by the same program compare as their strings do, or are equal,
// as long as the strings differ in no bit before the last one taken that is
// not taken itself.
type Program struct {
	Mask [Windows]uint64
	At   [Windows]uint16
}

// Bits is the length of the program's partial keys.
func (p *Program) Bits() (n int) {
	for _, m := range p.Mask {
		n += bits.OnesCount64(m)
	}
	return n
}

// Partial gives a string's partial key.
func (p *Program) Partial(key string) (partial uint64) {
	for w, mask := range p.Mask {
		if mask == 0 {
			break
		}
		partial = partial<<bits.OnesCount64(mask) | compress(StringWord(key, int(p.At[w])), mask)
	}
	return partial
}

// StringWord gives 8 bytes of a string, the first the highest; zeros behind its
// end.
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

// compress moves the bits of w under mask together at the lower end, as PEXT
// does: run by run of the mask's ones.
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

// Extract sets partial[i] to the partial key of keys[i] by the program at
// programs + which[i]·stride, whose partial keys are no longer than a C.
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

// FetchStrings asks for the first line of each string, and for its last.
func FetchStrings(keys []string) {
	if active != Go && len(keys) > 0 {
		fetchStringsAsm(&keys[0], len(keys))
	}
}
