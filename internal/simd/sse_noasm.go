//go:build !amd64 || noasm

package simd

func narrowAsm(*byte, Narrow, *byte, int, *int, int) { panic("simd: no assembly") }
