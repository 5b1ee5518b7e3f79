//go:build !amd64 || noasm

package simd

func detect() []Path { return []Path{Go} }

func rankAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func downAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func findAsm(*byte, bool, *byte, int, *int) { panic("simd: no assembly") }

func getAsm(*byte, bool, *byte, int, *byte, *bool) int { panic("simd: no assembly") }

func seekAsm(*byte, bool, uint64) (int, bool) { panic("simd: no assembly") }

func prefetchAsm(*byte, int) { panic("simd: no assembly") }

func streamAsm(*byte, *byte, int) { panic("simd: no assembly") }

func pauseAsm(int) { panic("simd: no assembly") }
