//go:build !noasm

package simd

//go:generate go run -C _gen . -isa avx2 -part extract -out ../extract_amd64.s -stubs ../extract_stubs_amd64.go -pkg simd

func extractAsm(programs *byte, stride int, which *int, keys *string, n int, wide bool, out *byte) {
	if wide {
		extract64(programs, stride, which, keys, n, out)
		return
	}
	extract32(programs, stride, which, keys, n, out)
}

func fetchStringsAsm(keys *string, n int) { fetchStrings(keys, n) }
