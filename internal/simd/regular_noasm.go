//go:build !amd64 || noasm

package simd

func seekRegularAsm(*byte, bool, uint64) (uint32, int, uint64) { panic("simd: no assembly") }

func placeRegularAsm(*byte, bool, *byte, int, *uint64, int, int) { panic("simd: no assembly") }

func getRegularAsm(*byte, bool, *byte, int, *byte, *bool, *int32, int, int) (int, int) {
	panic("simd: no assembly")
}

func commitAsm(*byte) bool { panic("simd: no assembly") }

const puts = false

func putRegularAsm(*byte, bool, *byte) { panic("simd: no assembly") }

func packRegularAsm(bool, *byte, *byte, *byte, *byte, int) uint64 { panic("simd: no assembly") }

const merges = false

func mergeRegularAsm(bool, *byte, *byte, *byte, *byte, int, *byte, *byte, int, *byte) int {
	panic("simd: no assembly")
}
