//go:build !noasm

package experiments

//go:generate go run -C ../simd/_gen . -part sse -isa avx2 -out ../../experiments/narrow_sse_amd64.s -stubs ../../experiments/narrow_sse_amd64.go -pkg experiments

func narrowAsm(s *byte, how Narrow, keys *byte, n int, ranks *int, flight int) {
	if how == ByTable {
		narrowTable(s, keys, n, ranks, flight)
		return
	}
	narrowCount(s, keys, n, ranks, flight)
}
