//go:build !noasm

package simd

//go:generate go run -C _gen . -part stairs -isa avx2 -out ../stairs_avx2_amd64.s -stubs ../stairs_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part stairs -isa avx512 -out ../stairs_avx512_amd64.s -stubs ../stairs_avx512_amd64.go -pkg simd

func rankDownAsm(s *byte, wide bool, keys *byte, n int, ranks *int) {
	switch {
	case active == AVX512 && wide:
		rankStairs64AVX512(s, keys, n, ranks)
	case active == AVX512:
		rankStairs32AVX512(s, keys, n, ranks)
	case wide:
		rankStairs64AVX2(s, keys, n, ranks)
	default:
		rankStairs32AVX2(s, keys, n, ranks)
	}
}

func findDownAsm(s *byte, wide bool, keys *byte, n int, ranks *int) {
	switch {
	case active == AVX512 && wide:
		findStairs64AVX512(s, keys, n, ranks)
	case active == AVX512:
		findStairs32AVX512(s, keys, n, ranks)
	case wide:
		findStairs64AVX2(s, keys, n, ranks)
	default:
		findStairs32AVX2(s, keys, n, ranks)
	}
}

func downStairsAsm(s *byte, wide bool, keys *byte, n int, nodes *int) {
	switch {
	case active == AVX512 && wide:
		downStairs64AVX512(s, keys, n, nodes)
	case active == AVX512:
		downStairs32AVX512(s, keys, n, nodes)
	case wide:
		downStairs64AVX2(s, keys, n, nodes)
	default:
		downStairs32AVX2(s, keys, n, nodes)
	}
}

func getDownAsm(s *byte, wide bool, keys *byte, n int, vals *byte, found *bool) int {
	switch {
	case active == AVX512 && wide:
		return getStairs64AVX512(s, keys, n, vals, found)
	case active == AVX512:
		return getStairs32AVX512(s, keys, n, vals, found)
	case wide:
		return getStairs64AVX2(s, keys, n, vals, found)
	default:
		return getStairs32AVX2(s, keys, n, vals, found)
	}
}
