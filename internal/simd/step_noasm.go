//go:build !amd64 || noasm

package simd

func stepAsm(*flatStep, bool, *byte, int, *int) { panic("simd: no assembly") }

func fetchAsm(*byte, *int, int, int) { panic("simd: no assembly") }
