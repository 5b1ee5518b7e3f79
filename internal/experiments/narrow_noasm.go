//go:build !amd64 || noasm

package experiments

func narrowAsm(*byte, Narrow, *byte, int, *int, int) { panic("experiments: no assembly") }
