//go:build !amd64 || noasm

package simd

func extractAsm(*byte, int, *int, *string, int, bool, *byte) { panic("simd: no assembly") }

func fetchStringsAsm(*string, int) { panic("simd: no assembly") }
