//go:build !amd64 || noasm

package simd

func packedRankAsm(*Packed, bool, *byte, int, *int, *byte) { panic("simd: no assembly") }

func packedFindAsm(*Packed, bool, *byte, int, *int, *byte) { panic("simd: no assembly") }

func packedSeekAsm(*Packed, bool, uint64, uint64) (int, bool) { panic("simd: no assembly") }

func unpackAsm(bool, *byte, *row, uint64, int, uint64, *byte) { panic("simd: no assembly") }
