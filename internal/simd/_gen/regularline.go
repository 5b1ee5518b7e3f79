package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The part of put that changes one line.

// entries returns the number of entries in a line at an address.
func (u *put) entries(line, at GPVirtual) (m GPVirtual) {
	w := u.w
	m = GP64()
	first, lo := GP64(), GP64()
	empty, bounded, some, end := u.label("empty"), u.label("bounded"), u.label("some"), u.label("end")
	w.load(Mem{Base: at}, first)
	seps := Mem{Base: u.pilot, Index: line, Scale: uint8(w.bytes()), Disp: offSeps}
	w.compare(first, seps)
	JHI(LabelRef(empty))
	TESTQ(line, line)
	JNE(LabelRef(bounded))
	CMPL(Mem{Base: u.pilot, Disp: infoFirst}, Imm(0))
	JNE(LabelRef(some))
	w.load(Mem{Base: u.pilot, Disp: infoLow}, lo)
	w.compare(first, lo)
	JHI(LabelRef(some))
	JMP(LabelRef(empty))
	Label(bounded)
	w.compare(first, seps.Offset(-w.bytes()))
	JHI(LabelRef(some))
	Label(empty)
	XORL(m.As32(), m.As32())
	JMP(LabelRef(end))
	Label(some)
	Comment("Places that are equal to the one before them are none.")
	k, next := YMM(), YMM()
	VMOVDQU(Mem{Base: at}, k)
	if w == 32 {
		VMOVDQU(u.turn, next)
		VPERMD(k, next, next)
		VPCMPEQD(next, k, k)
		VMOVMSKPS(k, first.As32())
	} else {
		VPERMQ(Imm(0b00_11_10_01), k, next)
		VPCMPEQQ(next, k, k)
		VMOVMSKPD(k, first.As32())
	}
	ANDL(U32(1<<(w.half()-1)-1), first.As32())
	POPCNTL(first.As32(), first.As32())
	MOVL(U32(w.half()), m.As32())
	SUBL(first.As32(), m.As32())
	Label(end)
	return m
}

// window loads lanes from number at on set, the others clear.
func (u *put) window(table, at GPVirtual) VecVirtual {
	v, from := YMM(), GP64()
	MOVQ(U32(u.w.half()), from)
	SUBQ(at, from)
	VMOVDQU(Mem{Base: table, Index: from, Scale: uint8(u.w.bytes())}, v)
	return v
}

// moved loads a half of a line, its lanes taken from others, and the pair's in
// those that chosen has.
func (u *put) moved(half Mem, from, chosen VecVirtual, pair Op) VecVirtual {
	v, all := YMM(), YMM()
	if u.w == 32 {
		VPBROADCASTD(pair, all)
	} else {
		VPBROADCASTQ(pair, all)
	}
	VPERMD(half, from, v)
	VPBLENDVB(chosen, all, v, v)
	return v
}

// insert puts a pair into a line at place at: entries from there on go to the
// right, and the last place is lost. Places up to but without end get the pair.
func (u *put) insert(la, at, end GPVirtual, key, val Mem) (keys, vals VecVirtual) {
	table, from, chosen := GP64(), YMM(), YMM()
	LEAQ(u.slide, table)
	behind, rest := u.window(table, at), u.window(table, end)
	VPADDD(u.iota, behind, from)
	if u.w == 64 {
		VPADDD(behind, from, from)
	}
	VPANDN(behind, rest, chosen)
	return u.moved(Mem{Base: la}, from, chosen, key), u.moved(Mem{Base: la, Disp: 32}, from, chosen, val)
}

// push puts a pair into a full line at place at: entries up to there go to the
// left, and the first is lost.
func (u *put) push(la, at GPVirtual, key, val Mem) {
	table, next, from, chosen := GP64(), GP64(), YMM(), YMM()
	LEAQ(u.slide, table)
	LEAQ(Mem{Base: at, Disp: 1}, next)
	behind, rest := u.window(table, at), u.window(table, next)
	before := YMM()
	VPCMPEQD(before, before, before)
	VPANDN(before, behind, before)
	VMOVDQU(u.iota, from)
	VPSUBD(before, from, from)
	if u.w == 64 {
		VPSUBD(before, from, from)
	}
	VPANDN(behind, rest, chosen)
	u.write(la, u.moved(Mem{Base: la}, from, chosen, key), u.moved(Mem{Base: la, Disp: 32}, from, chosen, val))
}

func (u *put) write(la GPVirtual, keys, vals VecVirtual) {
	VMOVDQA(keys, Mem{Base: la})
	u.stall()
	VMOVDQA(vals, Mem{Base: la, Disp: 32})
	u.stall()
}
