package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// regularPack emits the spreading of entries over the lines of a leaf. One copy
// serves both instruction sets.
func regularPack(w width) {
	half := w.half()
	table := fmt.Sprintf("repeat%d", w)
	GLOBL(table, attr.RODATA|attr.NOPTR)
	for count := 1; count <= half; count++ { // lanes of 32 bits: those of the first count keys, the last repeated
		for i := range 8 {
			per := w.bytes() / 4
			DATA(32*(count-1)+4*i, U32(uint32(min(i/per, count-1)*per+i%per)))
		}
	}
	TEXT(fmt.Sprintf("packRegular%d", w), NOSPLIT, "func(seps, block, keys, vals *byte, n int) (full uint64)")
	Pragma("noescape")
	Doc("Does what packRegularGo does; n must be at least 64, and there must be room for a line behind the last key and value.")
	seps, block := Load(Param("seps"), GP64()), Load(Param("block"), GP64()).(GPVirtual)
	keys, vals := Load(Param("keys"), GP64()), Load(Param("vals"), GP64())
	n, repeat, full := Load(Param("n"), GP64()), GP64(), GP64()
	LEAQ(NewDataAddr(Symbol{Name: table, Static: true}, 0), repeat)
	j, from, to, sum, count, v := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	XORL(full.As32(), full.As32())
	XORL(j.As32(), j.As32())
	XORL(from.As32(), from.As32())
	XORL(sum.As32(), sum.As32())
	size := uint8(w.bytes())
	Label("line")
	ADDQ(n, sum)
	MOVQ(sum, to)
	SHRQ(Imm(6), to)
	MOVQ(to, count)
	SUBQ(from, count)
	MOVQ(count, v)
	SHLQ(Imm(5), v)
	lanes, k, x := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: repeat, Index: v, Scale: 1, Disp: -32}, lanes)
	VPERMD(Mem{Base: keys, Index: from, Scale: size}, lanes, k)
	VPERMD(Mem{Base: vals, Index: from, Scale: size}, lanes, x)
	VMOVDQA(k, Mem{Base: block})
	VMOVDQA(x, Mem{Base: block, Disp: 32})
	w.load(Mem{Base: keys, Index: to, Scale: size, Disp: -w.bytes()}, v)
	w.store(v, Mem{Base: seps, Index: j, Scale: size})
	XORL(v.As32(), v.As32())
	CMPQ(count, Imm(uint64(half)))
	SETEQ(v.As8())
	SHLXQ(j, v, v)
	ORQ(v, full)
	MOVQ(to, from)
	ADDQ(Imm(64), block)
	INCQ(j)
	CMPQ(j, Imm(64))
	JNE(LabelRef("line"))
	Store(full, ReturnIndex(0))
	finish()
}
