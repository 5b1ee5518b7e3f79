//go:build !noasm

package simd

//go:generate go run -C _gen . -part step -isa avx2 -out ../step_avx2_amd64.s -stubs ../step_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part step -isa avx512 -out ../step_avx512_amd64.s -stubs ../step_avx512_amd64.go -pkg simd

func stepAsm(s *flatStep, wide bool, keys *byte, n int, nodes *int) {
	switch {
	case active == AVX512 && wide && s.inRow:
		stepRow64AVX512(bytes(s), keys, n, nodes)
	case active == AVX512 && wide:
		step64AVX512(bytes(s), keys, n, nodes)
	case active == AVX512 && s.inRow:
		stepRow32AVX512(bytes(s), keys, n, nodes)
	case active == AVX512:
		step32AVX512(bytes(s), keys, n, nodes)
	case wide && s.inRow:
		stepRow64AVX2(bytes(s), keys, n, nodes)
	case wide:
		step64AVX2(bytes(s), keys, n, nodes)
	case s.inRow:
		stepRow32AVX2(bytes(s), keys, n, nodes)
	default:
		step32AVX2(bytes(s), keys, n, nodes)
	}
}

func fetchAsm(base *byte, at *int, n, size int) { fetchEach(base, at, n, size) }
