//go:build !amd64 || noasm

package hbplus

func rankByAsm(*byte, Method, bool, *byte, int, *int) { panic("hbplus: no assembly") }
