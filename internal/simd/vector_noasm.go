//go:build !amd64 || noasm

package simd

func summarizeAsm(Kind, *byte, int, *byte) { panic("simd: no assembly") }

func withinAsm(Kind, *byte, int, uint64, uint64, *uint32) { panic("simd: no assembly") }

func unpackLeafAsm(bool, *byte, *byte, int, *byte, *byte) int { panic("simd: no assembly") }

func copyHalvesAsm(*byte, *byte, int) { panic("simd: no assembly") }
