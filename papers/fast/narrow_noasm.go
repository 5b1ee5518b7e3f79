//go:build !amd64 || noasm

package fast

func narrowAsm(*byte, Narrow, *byte, int, *int, int) { panic("fast: no assembly") }
