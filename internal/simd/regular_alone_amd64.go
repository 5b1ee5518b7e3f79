//go:build !noasm

package simd

// The files named regular_alone_* are for BenchmarkRegular alone: nothing of the
// product uses them.

//go:generate go run -C _gen . -part alone -isa avx2 -out ../regular_alone_avx2_amd64.s -stubs ../regular_alone_avx2_amd64.go -pkg simd
//go:generate go run -C _gen . -part alone -isa avx512 -out ../regular_alone_avx512_amd64.s -stubs ../regular_alone_avx512_amd64.go -pkg simd
