package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// eights is the staircase in steps of eight queries. Finding and reading the
// entry of its page takes a query as many instructions as the search in the
// page: here a vector does it for eight queries at once.
func (p *packer) eights(atGroup func(x, slot GPVirtual)) {
	keys := Load(Param("keys"), GP64()).(GPVirtual)
	n := Load(Param("n"), GP64()).(GPVirtual)
	out := Load(Param("out"), GP64()).(GPVirtual)
	room := Load(Param("room"), GP64()).(GPVirtual)
	slotOf := func(i GPVirtual) GPVirtual {
		slot := GP64()
		MOVL(i.As32(), slot.As32())
		ANDL(U32(slotCount-1), slot.As32())
		LEAQ(Mem{Base: room, Index: slot, Scale: 8}, slot)
		return slot
	}
	place := func(i Register) Mem { return Mem{Base: out, Index: i, Scale: 8} }
	t, i, end, distance := GP64(), GP64(), AllocLocal(8), GP64()
	MOVQ(p.field(packDistance), distance)
	ADDQ(Imm(7), distance)
	ANDQ(I8(-8), distance)
	CMPQ(distance, n) // a short batch needs no long staircase
	CMOVQHI(n, distance)
	LEAQ(Mem{Base: distance, Index: distance, Scale: 2}, t)
	ADDQ(n, t)
	MOVQ(t, end)
	XORL(t.As32(), t.As32())
	stage := func(name string, do func()) {
		CMPQ(i, n) // unsigned: not yet started, or already done
		JAE(LabelRef(name))
		do()
		Label(name)
		SUBQ(distance, i)
	}
	each := func(name string, do func(x, slot GPVirtual)) {
		to := GP64()
		LEAQ(Mem{Base: i, Disp: 8}, to)
		Label(name)
		x := GP64()
		MOVQ(place(i), x)
		do(x, slotOf(i))
		MOVQ(x, place(i))
		INCQ(i)
		CMPQ(i, to)
		JNE(LabelRef(name))
		SUBQ(Imm(8), i)
	}
	waiting := AllocLocal(64)
	Label("next")
	MOVQ(t, i)
	stage("waits", func() { p.waitEight(place(i), waiting) })
	stage("comes", func() {
		key := Mem{Base: keys, Index: i, Scale: uint8(p.w.bytes())}
		p.enterEight(place(i), key, slotOf(i))
	})
	stage("enters", func() {
		each("page", func(x, slot GPVirtual) { p.toGroup(x, slot, true) })
	})
	stage("ends", func() { each("group", atGroup) })
	ADDQ(Imm(8), t)
	CMPQ(t, end)
	JB(LabelRef("next"))
}

// fetchEight prefetches the eight addresses that are in memory at from.
func fetchEight(from Mem) {
	for k := range 8 {
		at := GP64()
		MOVQ(from.Offset(8*k), at)
		PREFETCHT1(Mem{Base: at})
	}
}

// waitEight converts the values passed in to pages, and prefetches their
// entries.
func (p *packer) waitEight(places, waiting Mem) {
	x, other := ZMM(), ZMM()
	VMOVDQU64(places, x)
	VPSRLQ(p.field(packShift), x, x)
	VPBROADCASTQ(p.field(packLast), other)
	VPMINUQ(other, x, x)
	VMOVDQU64(x, places)
	VPSLLQ(Imm(4), x, x)
	VPBROADCASTQ(p.field(packTable), other)
	VPADDQ(other, x, x)
	VMOVDQU64(x, waiting)
	fetchEight(waiting)
}

// enterEight is enter for eight queries.
func (p *packer) enterEight(places, keys Mem, slot GPVirtual) {
	index, least, code, other := ZMM(), ZMM(), ZMM(), ZMM()
	all, table := K(), GP64()
	MOVQ(p.field(packTable), table)
	VMOVDQU64(places, index)
	VPADDQ(index, index, index) // an entry has 16 bytes, the scale is at most 8
	KXNORW(all, all, all)
	VPGATHERQQ(Mem{Base: table, Index: index, Scale: 8}, all, least)
	KXNORW(all, all, all)
	VPGATHERQQ(Mem{Base: table, Index: index, Scale: 8, Disp: 8}, all, code)

	at := ZMM()
	VPSRLQ(Imm(8), code, at)
	VPBROADCASTQ(p.field(packEnd), other)
	VPMINUQ(other, at, at)
	VPSLLQ(Imm(3), at, at)
	VPBROADCASTQ(p.field(packWords), other)
	VPADDQ(other, at, at)
	VMOVDQU64(at, p.in(slot, slotAt))

	bits, flags, key := p.widths(code), ZMM(), ZMM()
	if p.w == 32 {
		VPMOVZXDQ(keys, key)
	} else {
		VMOVDQU64(keys, key)
	}
	under := K()
	VPCMPUQ(Imm(notLessOrEqual), key, least, under)
	KNOTB(under, under)
	p.ones(other)
	VPSLLQ_Z(Imm(48), other, under, flags) // any may be equal, none is below
	VPMAXUQ(key, least, key)
	VPSUBQ(least, key, key)
	VMOVDQU64(key, p.in(slot, slotD))
	if p.w == 64 {
		beyond := K()
		VPSRLVQ(bits, key, key)
		VPTESTMQ(key, key, beyond)
		VPSRLQ(Imm(48), other, other)
		VPSLLQ(Imm(32), other, beyond, flags) // all are below
	}
	VPORQ(bits, flags, flags)
	VMOVDQU64(flags, p.in(slot, slotBits))
	VPSLLQ(Imm(8), bits, bits)
	VPBROADCASTQ(p.field(packRows), other)
	VPADDQ(other, bits, bits)
	VMOVDQU64(bits, p.in(slot, slotRow))
	fetchEight(p.in(slot, slotAt))
}

// widths extracts the widths from the codes of entries: see most.
func (p *packer) widths(code VecVirtual) VecVirtual {
	bits, most := ZMM(), ZMM()
	p.ones(most)
	VPSRLQ(Imm(56), most, bits)
	VPANDQ(bits, code, bits)
	VPSRLQ(Imm(63), most, most)
	VPSLLQ(Imm(5), most, most)
	if p.w == 32 {
		VPMINUQ(most, bits, bits)
		return bits
	}
	over := K()
	VPCMPUQ(Imm(notLessOrEqual), most, bits, over)
	VPADDQ(most, most, over, bits) // 64
	return bits
}
