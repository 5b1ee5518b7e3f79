package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Fields of simd.Program, and of a string.
const (
	windows   = 4
	offMask   = 0
	offAt     = 8 * windows
	stringLen = 8
	stringTo  = 16
)

// extracts emits the routines that extract partial keys from strings.
func extracts() {
	extract(32)
	extract(64)
	fetchStrings()
}

// extract emits Extract for partial keys of width w.
func extract(w width) {
	TEXT(fmt.Sprintf("extract%d", w), NOSPLIT, "func(programs *byte, stride int, which *int, keys *string, n int, out *byte)")
	Pragma("noescape")
	Doc("Does what Extract does in Go; n must be at least 1.")
	programs, stride := Load(Param("programs"), GP64()), Load(Param("stride"), GP64())
	which, keys := Load(Param("which"), GP64()), Load(Param("keys"), GP64())
	n, out := Load(Param("n"), GP64()), Load(Param("out"), GP64())
	Label("query")
	program := GP64()
	MOVQ(Mem{Base: which}, program)
	IMULQ(stride, program)
	ADDQ(programs, program)
	key, length := GP64(), GP64()
	MOVQ(Mem{Base: keys}, key)
	MOVQ(Mem{Base: keys, Disp: stringLen}, length)
	partial := GP64()
	XORL(partial.As32(), partial.As32())
	for i := range windows {
		window(i, program, key, length, partial)
	}
	Label("done")
	if w == 32 {
		MOVL(partial.As32(), Mem{Base: out})
	} else {
		MOVQ(partial, Mem{Base: out})
	}
	ADDQ(Imm(8), which)
	ADDQ(Imm(stringTo), keys)
	ADDQ(Imm(uint64(w.bytes())), out)
	DECQ(n)
	JNE(LabelRef("query"))
	RET()
}

// window adds the bits of window i to the partial key.
func window(i int, program, key, length, partial GPVirtual) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, i) }
	mask, at, left, word, shift := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: program, Disp: offMask + 8*i}, mask)
	TESTQ(mask, mask)
	JE(LabelRef("done"))
	MOVWLZX(Mem{Base: program, Disp: offAt + 2*i}, at.As32())
	MOVQ(length, left)
	SUBQ(at, left)
	CMPQ(left, Imm(8))
	JL(LabelRef(label("end")))
	MOVQ(Mem{Base: key, Index: at, Scale: 1}, word)
	BSWAPQ(word)
	Label(label("take"))
	PEXTQ(mask, word, word)
	POPCNTQ(mask, shift)
	SHLXQ(shift, partial, partial)
	ORQ(word, partial)
	JMP(LabelRef(label("next")))

	// Fewer than 8 bytes are left.
	Label(label("end"))
	XORL(word.As32(), word.As32())
	CMPQ(left, Imm(0))
	JLE(LabelRef(label("take")))
	CMPQ(length, Imm(8))
	JL(LabelRef(label("short")))
	MOVQ(Mem{Base: key, Index: length, Scale: 1, Disp: -8}, word) // the last 8 bytes: those left are the lower ones
	BSWAPQ(word)
	MOVQ(left, shift)
	NEGQ(shift)
	LEAQ(Mem{Base: shift, Disp: 8}, shift)
	SHLQ(Imm(3), shift)
	SHLXQ(shift, word, word)
	JMP(LabelRef(label("take")))

	// The whole string has fewer than 8 bytes: 8 bytes are read from its
	// beginning, or up to its end if the former would reach into another page.
	Label(label("short"))
	unused := GP64()
	MOVQ(length, unused)
	NEGQ(unused)
	LEAQ(Mem{Base: unused, Disp: 8}, unused)
	SHLQ(Imm(3), unused) // number of bits among the 8 bytes that are not the string's
	MOVL(key.As32(), shift.As32())
	ANDL(U32(4095), shift.As32())
	CMPL(shift.As32(), U32(4088))
	JA(LabelRef(label("border")))
	MOVQ(Mem{Base: key}, word)
	BSWAPQ(word)
	SHRXQ(unused, word, word)
	JMP(LabelRef(label("aligned")))
	Label(label("border"))
	MOVQ(Mem{Base: key, Index: length, Scale: 1, Disp: -8}, word)
	BSWAPQ(word)
	Label(label("aligned")) // the string is at the lower end
	SHLXQ(unused, word, word)
	SHLQ(Imm(3), at)
	SHLXQ(at, word, word)
	JMP(LabelRef(label("take")))
	Label(label("next"))
}

// fetchStrings emits FetchStrings.
func fetchStrings() {
	TEXT("fetchStrings", NOSPLIT, "func(keys *string, n int)")
	Pragma("noescape")
	Doc("Prefetches the first and the last line of each string; n must be at least 1.")
	keys, n, at, length := Load(Param("keys"), GP64()), Load(Param("n"), GP64()), GP64(), GP64()
	Label("string")
	MOVQ(Mem{Base: keys}, at)
	MOVQ(Mem{Base: keys, Disp: stringLen}, length)
	PREFETCHT0(Mem{Base: at})
	PREFETCHT0(Mem{Base: at, Index: length, Scale: 1, Disp: -1})
	ADDQ(Imm(stringTo), keys)
	DECQ(n)
	JNE(LabelRef("string"))
	RET()
}
