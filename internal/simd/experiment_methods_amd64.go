//go:build !noasm

package simd

//go:generate go run -C _gen . -part methods -isa avx2 -out ../experiment_methods_avx2_amd64.s -stubs ../experiment_methods_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part methods -isa avx512 -out ../experiment_methods_avx512_amd64.s -stubs ../experiment_methods_avx512_amd64.go -pkg simd

// rankByAsm is for every method but Linear, which is Rank.
func rankByAsm(t *byte, m Method, wide bool, keys *byte, n int, ranks *int) {
	switch {
	case m == Hierarchical && active == AVX512 && wide:
		rank64HierarchicalAVX512(t, keys, n, ranks)
	case m == Hierarchical && active == AVX512:
		rank32HierarchicalAVX512(t, keys, n, ranks)
	case m == Hierarchical && wide:
		rank64HierarchicalAVX2(t, keys, n, ranks)
	case m == Hierarchical:
		rank32HierarchicalAVX2(t, keys, n, ranks)
	case wide: // one key after the other needs no vector: both paths share it
		rank64SequentialAVX2(t, keys, n, ranks)
	default:
		rank32SequentialAVX2(t, keys, n, ranks)
	}
}
