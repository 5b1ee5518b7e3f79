//go:build !noasm

package fast

//go:generate go run -C ../../internal/simd/_gen . -part sse -isa avx2 -out ../../../papers/fast/narrow_sse_amd64.s -stubs ../../../papers/fast/narrow_sse_amd64.go -pkg fast

func narrowAsm(s *byte, how Narrow, keys *byte, n int, ranks *int, flight int) {
	if how == ByTable {
		narrowTable(s, keys, n, ranks, flight)
		return
	}
	narrowCount(s, keys, n, ranks, flight)
}
