//go:build !amd64 || noasm

package simd

func summarizeAsm(NumberKind, *byte, int, *byte) { panic("simd: no assembly") }

func withinAsm(NumberKind, *byte, int, uint64, uint64, *uint32) { panic("simd: no assembly") }

func unpackLeafAsm(bool, *byte, *byte, int, *byte, *byte) int { panic("simd: no assembly") }

func copyHalvesAsm(*byte, *byte, int) { panic("simd: no assembly") }
