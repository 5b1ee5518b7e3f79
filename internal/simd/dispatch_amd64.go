//go:build !noasm

package simd

//go:generate go run -C _gen . -isa avx2 -out ../search_avx2_amd64.s -stubs ../search_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -isa avx512 -out ../search_avx512_amd64.s -stubs ../search_avx512_amd64.go -pkg simd

import "golang.org/x/sys/cpu"

func detect() []Path {
	paths := []Path{Go}
	x := &cpu.X86
	if x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasPOPCNT {
		paths = append(paths, AVX2)
		if x.HasAVX512F && x.HasAVX512VL && x.HasAVX512BW && x.HasAVX512DQ {
			paths = append(paths, AVX512)
		}
	}
	return paths
}

// The assembly is called directly, case by case: if the calls went through a
// table of functions, the compiler would have to assume that the pointers
// escape.

func rankAsm(t *byte, wide bool, keys *byte, n int, ranks *int) {
	switch {
	case active == AVX512 && wide:
		rank64AVX512(t, keys, n, ranks)
	case active == AVX512:
		rank32AVX512(t, keys, n, ranks)
	case wide:
		rank64AVX2(t, keys, n, ranks)
	default:
		rank32AVX2(t, keys, n, ranks)
	}
}

func findAsm(t *byte, wide bool, keys *byte, n int, ranks *int) {
	switch {
	case active == AVX512 && wide:
		find64AVX512(t, keys, n, ranks)
	case active == AVX512:
		find32AVX512(t, keys, n, ranks)
	case wide:
		find64AVX2(t, keys, n, ranks)
	default:
		find32AVX2(t, keys, n, ranks)
	}
}

func downAsm(t *byte, wide bool, keys *byte, n int, places *int) {
	switch {
	case active == AVX512 && wide:
		down64AVX512(t, keys, n, places)
	case active == AVX512:
		down32AVX512(t, keys, n, places)
	case wide:
		down64AVX2(t, keys, n, places)
	default:
		down32AVX2(t, keys, n, places)
	}
}

func getAsm(t *byte, wide bool, keys *byte, n int, vals *byte, found *bool) int {
	switch {
	case active == AVX512 && wide:
		return get64AVX512(t, keys, n, vals, found)
	case active == AVX512:
		return get32AVX512(t, keys, n, vals, found)
	case wide:
		return get64AVX2(t, keys, n, vals, found)
	default:
		return get32AVX2(t, keys, n, vals, found)
	}
}

func seekAsm(t *byte, wide bool, key uint64) (rank int, equal bool) {
	switch {
	case active == AVX512 && wide:
		return seek64AVX512(t, key)
	case active == AVX512:
		return seek32AVX512(t, key)
	case wide:
		return seek64AVX2(t, key)
	default:
		return seek32AVX2(t, key)
	}
}

func prefetchAsm(at *byte, lines int) { prefetchLines(at, lines) }

func streamAsm(dst, src *byte, lines int) { streamLines(dst, src, lines) }

func pauseAsm(times int) { pauseTimes(times) }
