//go:build !amd64 || noasm

package simd

func rankDownAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func findDownAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func downStairsAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func getDownAsm(*byte, bool, *byte, int, *byte, *bool) int { panic("simd: no assembly") }
