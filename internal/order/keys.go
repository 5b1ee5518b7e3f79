package order

import (
	"fmt"
	"unsafe"
)

// Keys is a slice of keys without their type, so that code that works on
// batches is compiled once per width of codes and not once per type of keys.
// The slice stays the caller's.
type Keys struct {
	Type
	data unsafe.Pointer
	n    int
}

// KeysOf returns keys as Keys.
func KeysOf[K Key](keys []K) Keys { return KeysAs(TypeOf[K](), keys) }

// KeysAs is KeysOf for a caller that knows the type of K already.
func KeysAs[K Key](t Type, keys []K) Keys {
	return Keys{t, unsafe.Pointer(unsafe.SliceData(keys)), len(keys)}
}

// KeysAt returns n keys of a type that lie one behind the other.
func KeysAt(t Type, at unsafe.Pointer, n int) Keys { return Keys{t, at, n} }

// Len returns the number of keys.
func (k Keys) Len() int { return k.n }

// Slice returns keys [lo, hi).
func (k Keys) Slice(lo, hi int) Keys {
	if lo < 0 || lo > hi || hi > k.n {
		outside(lo, hi, k.n)
	}
	if lo < hi { // an empty slice may not point behind its memory
		k.data = unsafe.Add(k.data, lo*int(k.size))
	}
	k.n = hi - lo
	return k
}

// outside panics; apart, so that Slice is inlined.
func outside(lo, hi, n int) { panic(fmt.Sprintf("order: keys [%d:%d] of %d", lo, hi, n)) }

// At returns where the keys lie.
func (k Keys) At() unsafe.Pointer { return k.data }

// Raw returns the memory of the keys where their bits already are their codes,
// else nil.
func (k Keys) Raw() []byte {
	if !k.identity() {
		return nil
	}
	return unsafe.Slice((*byte)(k.data), k.n*int(k.size))
}

// Strings returns keys that are strings.
func (k Keys) Strings() []string {
	if k.kind != none {
		panic("order: keys of fixed width are no strings")
	}
	return view[string](k)
}

// view returns keys as a slice of T, a type of their size.
func view[T any](k Keys) []T { return unsafe.Slice((*T)(k.data), k.n) }

// CodeBits returns the width of codes of type C.
func CodeBits[C Code]() int {
	var c C
	return 8 * int(unsafe.Sizeof(c))
}

// mustHave panics if codes of type C are not those of keys of the type.
func mustHave[C Code](t Type) {
	if CodeBits[C]() != t.Bits() {
		noSuchCode(t.Bits(), CodeBits[C]())
	}
}

func noSuchCode(have, want int) {
	panic(fmt.Sprintf("order: keys with codes of %d bits have none of %d", have, want))
}

// Codes returns the codes of keys: the keys' own memory where their bits
// already serve (dst is not touched and may be nil), and else dst[:k.Len()],
// filled. It panics if dst is needed and too short, or if the keys have no
// codes of type C.
func Codes[C Code](k Keys, dst []C) []C {
	mustHave[C](k.Type)
	if k.identity() {
		return view[C](k)
	}
	dst = dst[:k.n]
	switch flipped := C(k.flip()); {
	case k.size == 1:
		widen(dst, view[uint8](k), flipped)
	case k.size == 2:
		widen(dst, view[uint16](k), flipped)
	case k.kind == signed:
		flip(dst, view[C](k), flipped)
	case k.size == 4:
		encodeSlice32(recast[uint32](dst), view[float32](k))
	default:
		encodeSlice64(recast[uint64](dst), view[float64](k))
	}
	return dst
}

// CodesTo sets dst, which is as long as keys, to their codes. Unlike Codes it
// always copies.
func CodesTo[C Code](dst []C, k Keys) {
	if codes := Codes(k, dst); k.identity() {
		copy(dst, codes)
	}
}

// SetKeys sets the first len(codes) keys to those of the codes. It panics if
// there are fewer keys.
func SetKeys[C Code](k Keys, codes []C) {
	mustHave[C](k.Type)
	k = k.Slice(0, len(codes))
	switch flipped := C(k.flip()); {
	case k.identity():
		copy(view[C](k), codes)
	case k.size == 1:
		narrow(view[uint8](k), codes, flipped)
	case k.size == 2:
		narrow(view[uint16](k), codes, flipped)
	case k.kind == signed:
		flip(view[C](k), codes, flipped)
	case k.size == 4:
		decodeSlice32(view[float32](k), recast[uint32](codes))
	default:
		decodeSlice64(view[float64](k), recast[uint64](codes))
	}
}

// recast returns s as a slice of T, a type of the same size.
func recast[T, S any](s []S) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// The loops below see two slices that are known to be of one length, which
// leaves them no bounds checks.

func widen[C Code, S uint8 | uint16](dst []C, src []S, flip C) {
	dst = dst[:len(src)]
	for i, k := range src {
		dst[i] = C(k) ^ flip
	}
}

func narrow[S uint8 | uint16, C Code](dst []S, src []C, flip C) {
	dst = dst[:len(src)]
	for i, c := range src {
		dst[i] = S(c ^ flip)
	}
}

func flip[C Code](dst, src []C, flip C) {
	dst = dst[:len(src)]
	for i, k := range src {
		dst[i] = k ^ flip
	}
}

func encodeSlice32(dst []uint32, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = encode32(f)
	}
}

func encodeSlice64(dst []uint64, src []float64) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = encode64(f)
	}
}

func decodeSlice32(dst []float32, src []uint32) {
	dst = dst[:len(src)]
	for i, c := range src {
		dst[i] = decode32(c)
	}
}

func decodeSlice64(dst []float64, src []uint64) {
	dst = dst[:len(src)]
	for i, c := range src {
		dst[i] = decode64(c)
	}
}

// MakeKeys returns n keys of a type of fixed width, all zero.
func MakeKeys(t Type, n int) Keys {
	if t.kind == none {
		panic("order: strings are not made of zeros")
	}
	memory := make([]uint64, (n*int(t.size)+7)/8)
	return Keys{t, unsafe.Pointer(unsafe.SliceData(memory)), n}
}

// Probe returns key i.
func (k Keys) Probe(i int) Probe {
	k = k.Slice(i, i+1)
	switch {
	case k.kind == none:
		return Probe{Text: *(*string)(k.data)}
	case k.Bits() == 32:
		var c [1]uint32
		CodesTo(c[:], k)
		return Probe{Code: uint64(c[0])}
	}
	var c [1]uint64
	CodesTo(c[:], k)
	return Probe{Code: c[0]}
}

// SetProbe sets key i.
func (k Keys) SetProbe(i int, p Probe) {
	k = k.Slice(i, i+1)
	switch {
	case k.kind == none:
		*(*string)(k.data) = p.Text
	case k.kind == unsigned && k.size == 8: // the usual one
		*(*uint64)(k.data) = p.Code
	case k.Bits() == 32:
		SetKeys(k, []uint32{uint32(p.Code)})
	default:
		SetKeys(k, []uint64{p.Code})
	}
}

// Copy copies keys of the same type; there must be as many at least.
func (k Keys) Copy(from Keys) {
	if k.kind == none {
		copy(k.Strings(), from.Strings())
		return
	}
	k = k.Slice(0, from.n)
	copy(unsafe.Slice((*byte)(k.data), k.n*int(k.size)), unsafe.Slice((*byte)(from.data), from.n*int(from.size)))
}

// Clear makes keys that are strings empty, so that their bytes are not kept. Others
// stay.
func (k Keys) Clear() {
	if k.kind == none {
		clear(k.Strings())
	}
}
