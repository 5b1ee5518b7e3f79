//go:build !noasm

package simd

//go:generate go run -C _gen . -part packed -isa avx2 -out ../packed_avx2_amd64.s -stubs ../packed_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part packed -isa avx512 -out ../packed_avx512_amd64.s -stubs ../packed_avx512_amd64.go -pkg simd

import "unsafe"

// keySize returns the size of a key in bytes.
func keySize(wide bool) int {
	if wide {
		return 8
	}
	return 4
}

func packedRankAsm(p *Packed, wide bool, keys *byte, n int, ranks *int, room *byte) {
	t := bytes(p)
	if active == AVX512 && n >= 8 {
		eights := n &^ 7
		if wide {
			packedRankEights64AVX512(t, keys, eights, ranks, room)
		} else {
			packedRankEights32AVX512(t, keys, eights, ranks, room)
		}
		if n -= eights; n == 0 {
			return
		}
		keys, ranks = (*byte)(unsafe.Add(unsafe.Pointer(keys), eights*keySize(wide))), (*int)(unsafe.Add(unsafe.Pointer(ranks), eights*8))
	}
	switch {
	case active == AVX512 && wide:
		packedRank64AVX512(t, keys, n, ranks, room)
	case active == AVX512:
		packedRank32AVX512(t, keys, n, ranks, room)
	case wide:
		packedRank64AVX2(t, keys, n, ranks, room)
	default:
		packedRank32AVX2(t, keys, n, ranks, room)
	}
}

func packedFindAsm(p *Packed, wide bool, keys *byte, n int, ranks *int, room *byte) {
	t := bytes(p)
	if active == AVX512 && n >= 8 {
		eights := n &^ 7
		if wide {
			packedFindEights64AVX512(t, keys, eights, ranks, room)
		} else {
			packedFindEights32AVX512(t, keys, eights, ranks, room)
		}
		if n -= eights; n == 0 {
			return
		}
		keys, ranks = (*byte)(unsafe.Add(unsafe.Pointer(keys), eights*keySize(wide))), (*int)(unsafe.Add(unsafe.Pointer(ranks), eights*8))
	}
	switch {
	case active == AVX512 && wide:
		packedFind64AVX512(t, keys, n, ranks, room)
	case active == AVX512:
		packedFind32AVX512(t, keys, n, ranks, room)
	case wide:
		packedFind64AVX2(t, keys, n, ranks, room)
	default:
		packedFind32AVX2(t, keys, n, ranks, room)
	}
}

func packedSeekAsm(p *Packed, wide bool, page, key uint64) (rank int, equal bool) {
	t := bytes(p)
	switch {
	case active == AVX512 && wide:
		return packedSeek64AVX512(t, page, key)
	case active == AVX512:
		return packedSeek32AVX512(t, page, key)
	case wide:
		return packedSeek64AVX2(t, page, key)
	default:
		return packedSeek32AVX2(t, page, key)
	}
}

func unpackAsm(wide bool, at *byte, r *row, least uint64, groups int, size uint64, dst *byte) {
	t := bytes(r)
	switch {
	case active == AVX512 && wide:
		unpack64AVX512(at, t, least, groups, size, dst)
	case active == AVX512:
		unpack32AVX512(at, t, least, groups, size, dst)
	case wide:
		unpack64AVX2(at, t, least, groups, size, dst)
	default:
		unpack32AVX2(at, t, least, groups, size, dst)
	}
}
