//go:build !noasm

package simd

//go:generate go run -C _gen . -part regular -isa avx2 -out ../regular_avx2_amd64.s -stubs ../regular_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part regular -isa avx512 -out ../regular_avx512_amd64.s -stubs ../regular_avx512_amd64.go -pkg simd

func seekRegularAsm(r *byte, wide bool, key uint64) (leaf uint32, line int, word uint64) {
	switch {
	case active == AVX512 && wide:
		return seekRegular64AVX512(r, key)
	case active == AVX512:
		return seekRegular32AVX512(r, key)
	case wide:
		return seekRegular64AVX2(r, key)
	default:
		return seekRegular32AVX2(r, key)
	}
}

func placeRegularAsm(r *byte, wide bool, keys *byte, n int, places *uint64, top, distance int) {
	switch {
	case active == AVX512 && wide:
		placeRegular64AVX512(r, keys, n, places, top, distance)
	case active == AVX512:
		placeRegular32AVX512(r, keys, n, places, top, distance)
	case wide:
		placeRegular64AVX2(r, keys, n, places, top, distance)
	default:
		placeRegular32AVX2(r, keys, n, places, top, distance)
	}
}

func getRegularAsm(r *byte, wide bool, keys *byte, n int, vals *byte, found *bool, again *int32, top, distance int) (hits, repeat int) {
	switch {
	case active == AVX512 && wide:
		return getRegular64AVX512(r, keys, n, vals, found, again, top, distance)
	case active == AVX512:
		return getRegular32AVX512(r, keys, n, vals, found, again, top, distance)
	case wide:
		return getRegular64AVX2(r, keys, n, vals, found, again, top, distance)
	default:
		return getRegular32AVX2(r, keys, n, vals, found, again, top, distance)
	}
}

func commitAsm(c *byte) bool {
	if active == AVX512 {
		return commitAVX512(c)
	}
	return commitAVX2(c)
}

const puts = true

func putRegularAsm(r *byte, wide bool, p *byte) {
	switch {
	case active == AVX512 && wide:
		putRegular64AVX512(r, p)
	case active == AVX512:
		putRegular32AVX512(r, p)
	case wide:
		putRegular64AVX2(r, p)
	default:
		putRegular32AVX2(r, p)
	}
}

func packRegularAsm(wide bool, seps, block, keys, vals *byte, n int) (full uint64) {
	if wide {
		return packRegular64(seps, block, keys, vals, n)
	}
	return packRegular32(seps, block, keys, vals, n)
}

const merges = true

func mergeRegularAsm(wide bool, keys, vals, have, haveVals *byte, n int, put, putVals *byte, m int, room *byte) int {
	if wide {
		return mergeRegular64AVX512(keys, vals, have, haveVals, n, put, putVals, m, room)
	}
	return mergeRegular32AVX512(keys, vals, have, haveVals, n, put, putVals, m, room)
}
