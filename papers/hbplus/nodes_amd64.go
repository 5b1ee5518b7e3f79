//go:build !noasm

package hbplus

import "github.com/pando-index/pando/internal/simd"

//go:generate go run -C ../../internal/simd/_gen . -part methods -isa avx2 -out ../../../papers/hbplus/nodes_avx2_amd64.s -stubs ../../../papers/hbplus/nodes_avx2_amd64.go -pkg hbplus
//go:generate go run -C ../../internal/simd/_gen . -part methods -isa avx512 -out ../../../papers/hbplus/nodes_avx512_amd64.s -stubs ../../../papers/hbplus/nodes_avx512_amd64.go -pkg hbplus

// rankByAsm is for every method but Linear, which is simd.Rank.
func rankByAsm(t *byte, m Method, wide bool, keys *byte, n int, ranks *int) {
	widest := simd.Active() == simd.AVX512
	switch {
	case m == Hierarchical && widest && wide:
		rank64HierarchicalAVX512(t, keys, n, ranks)
	case m == Hierarchical && widest:
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
