package order

import "unsafe"

// EncodeSlice returns the codes of src: if the codec is the identity, src
// itself, reinterpreted (dst is not touched and may be nil), otherwise
// dst[:len(src)], filled. It panics if dst is needed and too short.
func (c Codec[K, C]) EncodeSlice(dst []C, src []K) []C {
	if c.Identity() {
		return recast[C](src)
	}
	dst = dst[:len(src)]
	var k K
	switch size := unsafe.Sizeof(k); {
	case size == 1:
		widen(dst, recast[uint8](src), c.flip)
	case size == 2:
		widen(dst, recast[uint16](src), c.flip)
	case c.kind == signed:
		flip(dst, recast[C](src), c.flip)
	case size == 4:
		encodeSlice32(recast[uint32](dst), recast[float32](src))
	default:
		encodeSlice64(recast[uint64](dst), recast[float64](src))
	}
	return dst
}

// EncodeTo sets dst, which must be as long as src, to the codes of src. Unlike
// EncodeSlice it always copies.
func (c Codec[K, C]) EncodeTo(dst []C, src []K) {
	if codes := c.EncodeSlice(dst, src); c.Identity() {
		copy(dst, codes)
	}
}

// DecodeSlice sets dst[:len(src)] to the keys of the codes src. It panics if
// dst is too short.
func (c Codec[K, C]) DecodeSlice(dst []K, src []C) {
	dst = dst[:len(src)]
	var k K
	switch size := unsafe.Sizeof(k); {
	case c.Identity():
		copy(recast[C](dst), src)
	case size == 1:
		narrow(recast[uint8](dst), src, c.flip)
	case size == 2:
		narrow(recast[uint16](dst), src, c.flip)
	case c.kind == signed:
		flip(recast[C](dst), src, c.flip)
	case size == 4:
		decodeSlice32(recast[float32](dst), recast[uint32](src))
	default:
		decodeSlice64(recast[float64](dst), recast[uint64](src))
	}
}

// recast returns s as a slice of T, a type of the same size.
func recast[T, S any](s []S) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// The loops below see two slices that are known to have the same length, so
// the compiler omits bounds checks.

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
