//go:build !amd64 || noasm

package simd

func rankByAsm(*byte, Method, bool, *byte, int, *int) { panic("simd: no assembly") }
