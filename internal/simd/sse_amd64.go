//go:build !noasm

package simd

//go:generate go run -C _gen . -part sse -isa avx2 -out ../sse_amd64.s -stubs ../sse_stubs_amd64.go -pkg simd

func narrowAsm(s *byte, how Narrow, keys *byte, n int, ranks *int, flight int) {
	if how == ByTable {
		narrowTable(s, keys, n, ranks, flight)
		return
	}
	narrowCount(s, keys, n, ranks, flight)
}
