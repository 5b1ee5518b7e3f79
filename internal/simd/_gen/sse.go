package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// offNarrow is where the table is in a fast.narrowStairs: behind a
// simd.Tree. Its entries are those of a simd.Stairs.
const offNarrow = 232

// sse emits the search of the FAST paper, for package papers/fast: vectors of
// 128 bits, four keys of which three are compared.
func sse() {
	GLOBL("children", RODATA|NOPTR)
	table := NewDataAddr(Symbol{Name: "children", Static: true}, 0)
	for mask, child := range []uint8{0, 1, 1, 2, 1, 2, 2, 3} {
		DATA(mask, U8(child))
	}
	narrow("Table", func(mask GPVirtual) {
		at := GP64()
		LEAQ(table, at)
		MOVBLZX(Mem{Base: at, Index: mask, Scale: 1}, mask.As32())
	})
	narrow("Count", func(mask GPVirtual) { POPCNTL(mask.As32(), mask.As32()) })
}

// narrow emits a search that makes of a mask of comparisons a child as it is
// told.
func narrow(name string, child func(mask GPVirtual)) {
	TEXT("narrow"+name, NOSPLIT, "func(s *byte, keys *byte, n int, out *int, flight int)")
	Pragma("noescape")
	Doc("Equals narrowGo; n and flight are at least 1.")
	s := Load(Param("s"), GP64())
	keys, out := Load(Param("keys"), GP64()), Load(Param("out"), GP64())
	left, flight := AllocLocal(8), AllocLocal(8) // queries still to come; those that go down together
	v := GP64()
	Load(Param("n"), v)
	MOVQ(v, left)
	Load(Param("flight"), v)
	MOVQ(v, flight)
	c := avx2{}.prepare(32)
	sign := c.sign.(Vec).AsX()
	n, i, x := GP64(), GP64(), GP64()

	below := func(q VecVirtual, keys Mem, mask GPVirtual) {
		v := XMM()
		VPXOR(keys, sign, v)
		VPCMPGTD(v, q, v)
		VMOVMSKPS(v, mask.As32())
	}
	load := func() VecVirtual {
		q := XMM()
		VPBROADCASTD(Mem{Base: keys, Index: i, Scale: 4}, q)
		VPXOR(sign, q, q)
		return q
	}
	place := Mem{Base: out, Index: i, Scale: 8}
	zero := GP64()
	XORL(zero.As32(), zero.As32())
	each := func(label string, do func()) { // for each query under way
		XORL(i.As32(), i.As32())
		Label(label)
		do()
		INCQ(i)
		CMPQ(i, n)
		JNE(LabelRef(label))
	}

	Label("group")
	MOVQ(flight, n)
	CMPQ(n, left)
	CMOVQGT(left, n)
	each("root", func() { MOVQ(zero, place) })
	entry, levels := GP64(), GP64()
	LEAQ(Mem{Base: s, Disp: offNarrow}, entry)
	MOVQ(Mem{Base: s, Disp: offLevels}, levels)
	TESTQ(levels, levels)
	JE(LabelRef("leaves"))
	Label("level")
	each("query", func() {
		MOVQ(place, x)
		q, line := load(), GP64()
		LEAQ(numbers{}.node(nil, entry, 0, x), line)
		block, inner := GP64(), GP64()
		below(q, Mem{Base: line}, block)
		ANDL(Imm(7), block.As32())
		child(block)
		LEAQ(Mem{Base: block, Index: block, Scale: 2}, inner) // blocks of three keys, the first behind the upper one
		below(q, Mem{Base: line, Index: inner, Scale: 4, Disp: 12}, inner)
		ANDL(Imm(7), inner.As32())
		child(inner)
		LEAQ(Mem{Base: inner, Index: block, Scale: 4}, block)
		SHLQ(Imm(4), x)
		LEAQ(Mem{Base: x, Index: block, Scale: 8}, x)
		MOVQ(x, place)
		PREFETCHT0(numbers{}.node(nil, entry, 1, x))
	})
	ADDQ(Imm(uint64(numbers{}.stride())), entry)
	DECQ(levels)
	JNE(LabelRef("level"))

	Label("leaves")
	each("leaf", func() {
		MOVQ(place, x)
		last, leaf := GP64(), GP64()
		ADDQ(Mem{Base: s, Disp: offLeaves}, x)
		MOVQ(Mem{Base: s, Disp: offLastLeaf}, last)
		CMPQ(x, last)
		CMOVQHI(last, x)
		MOVQ(Mem{Base: s}, leaf)
		LEAQ(Mem{Base: leaf, Index: x, Scale: 8}, leaf)
		SUBQ(Mem{Base: s, Disp: offLeaves}, x)
		ADDQ(x, x) // 16 keys a leaf, places count 8 a line
		q := load()
		for part := range 4 {
			mask := GP64()
			below(q, Mem{Base: leaf, Disp: 16 * part}, mask)
			POPCNTL(mask.As32(), mask.As32())
			ADDQ(mask, x)
		}
		CMPQ(x, Mem{Base: s, Disp: offLen})
		CMOVQHI(Mem{Base: s, Disp: offLen}, x)
		MOVQ(x, place)
	})
	LEAQ(Mem{Base: keys, Index: n, Scale: 4}, keys)
	LEAQ(Mem{Base: out, Index: n, Scale: 8}, out)
	SUBQ(n, left)
	JNE(LabelRef("group"))
	finish()
}
