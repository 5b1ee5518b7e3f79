//go:build !noasm

package simd

//go:generate go run -C _gen . -part vector -isa avx2 -out ../vector_avx2_amd64.s -stubs ../vector_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part vector -isa avx512 -out ../vector_avx512_amd64.s -stubs ../vector_avx512_amd64.go -pkg simd

func summarizeAsm(k NumberKind, vals *byte, groups int, out *byte) {
	if active == AVX512 {
		summarize512(k, vals, groups, out)
		return
	}
	switch k {
	case Int32:
		summarizeInt32AVX2(vals, groups, out)
	case Uint32:
		summarizeUint32AVX2(vals, groups, out)
	case Float32:
		summarizeFloat32AVX2(vals, groups, out)
	case Int64:
		summarizeInt64AVX2(vals, groups, out)
	case Uint64:
		summarizeUint64AVX2(vals, groups, out)
	case Float64:
		summarizeFloat64AVX2(vals, groups, out)
	}
}

func summarize512(k NumberKind, vals *byte, groups int, out *byte) {
	switch k {
	case Int32:
		summarizeInt32AVX512(vals, groups, out)
	case Uint32:
		summarizeUint32AVX512(vals, groups, out)
	case Float32:
		summarizeFloat32AVX512(vals, groups, out)
	case Int64:
		summarizeInt64AVX512(vals, groups, out)
	case Uint64:
		summarizeUint64AVX512(vals, groups, out)
	case Float64:
		summarizeFloat64AVX512(vals, groups, out)
	}
}

func withinAsm(k NumberKind, vals *byte, groups int, lo, hi uint64, out *uint32) {
	if active == AVX512 {
		within512(k, vals, groups, lo, hi, out)
		return
	}
	switch k {
	case Int32:
		withinInt32AVX2(vals, groups, lo, hi, out)
	case Uint32:
		withinUint32AVX2(vals, groups, lo, hi, out)
	case Float32:
		withinFloat32AVX2(vals, groups, lo, hi, out)
	case Int64:
		withinInt64AVX2(vals, groups, lo, hi, out)
	case Uint64:
		withinUint64AVX2(vals, groups, lo, hi, out)
	case Float64:
		withinFloat64AVX2(vals, groups, lo, hi, out)
	}
}

func within512(k NumberKind, vals *byte, groups int, lo, hi uint64, out *uint32) {
	switch k {
	case Int32:
		withinInt32AVX512(vals, groups, lo, hi, out)
	case Uint32:
		withinUint32AVX512(vals, groups, lo, hi, out)
	case Float32:
		withinFloat32AVX512(vals, groups, lo, hi, out)
	case Int64:
		withinInt64AVX512(vals, groups, lo, hi, out)
	case Uint64:
		withinUint64AVX512(vals, groups, lo, hi, out)
	case Float64:
		withinFloat64AVX512(vals, groups, lo, hi, out)
	}
}

func unpackLeafAsm(wide bool, seps, lines *byte, n int, keys, vals *byte) int {
	if wide {
		return unpackLeaf64(seps, lines, n, keys, vals)
	}
	return unpackLeaf32(seps, lines, n, keys, vals)
}

func copyHalvesAsm(dst, src *byte, n int) { copyHalves(dst, src, n) }
