package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Instructions for nodes of a regular tree beyond whole lines of keys.

// Bits of the lanes of an index line that hold separators, and of those of a
// line but the last.
func (w width) indexLanes() uint64 { return 1<<(64/w.keys()-1) - 1 }
func (w width) mostLanes() uint64  { return 1<<(w.keys()-1) - 1 }

func (a avx512) prepareIndex(w width) consts {
	c := a.prepare(w)
	load := func(bits uint64) Register {
		v, mask := GP32(), K()
		MOVL(U32(bits), v)
		KMOVW(v, mask)
		return mask
	}
	c.most = load(w.mostLanes())
	c.index = c.most
	if w == 32 {
		c.index = load(w.indexLanes())
	}
	return c
}

func (avx512) belowIndex(w width, c consts, q query, node Mem, dst Register) {
	if w == 32 { // three separators
		VPCMPUD(Imm(notLessOrEqual), node, q.all.(Vec).AsX(), c.index, c.mask)
	} else {
		VPCMPUQ(Imm(notLessOrEqual), node, q.all, c.index, c.mask)
	}
	KMOVB(c.mask, as32(dst))
}

func (avx512) belowMost(w width, c consts, q query, node Mem, dst Register) {
	lane(w, func(o ...Op) { VPCMPUD(o...) }, func(o ...Op) { VPCMPUQ(o...) })(Imm(notLessOrEqual), node, q.all, c.most, c.mask)
	mask16(w, c.mask, dst)
}

func (avx512) equalHalf(w width, c consts, q query, node Mem, dst Register) {
	lane(w, func(o ...Op) { VPCMPEQD(o...) }, func(o ...Op) { VPCMPEQQ(o...) })(node, q.all.(Vec).AsY(), c.mask)
	KMOVB(c.mask, as32(dst))
}

func (avx512) belowHalf(w width, c consts, q query, node Mem, dst Register) {
	lane(w, func(o ...Op) { VPCMPUD(o...) }, func(o ...Op) { VPCMPUQ(o...) })(Imm(notLessOrEqual), node, q.all.(Vec).AsY(), c.mask)
	KMOVB(c.mask, as32(dst))
}

func (avx512) copyLine(dst, src Mem) {
	v := ZMM()
	VMOVDQU64(src, v)
	VMOVDQA64(v, dst)
}

func (a avx2) prepareIndex(w width) consts { return a.prepare(w) }

func (a avx2) belowIndex(w width, c consts, q query, node Mem, dst Register) {
	if w == 32 { // three separators
		a.belowPart(w, c, q, node, dst)
	} else {
		a.below(w, c, q, node, dst)
	}
	ANDL(U32(w.indexLanes()), as32(dst))
}

func (a avx2) belowMost(w width, c consts, q query, node Mem, dst Register) {
	a.below(w, c, q, node, dst)
	ANDL(U32(w.mostLanes()), as32(dst))
}

func (a avx2) equalHalf(w width, c consts, q query, node Mem, dst Register) {
	a.compareHalf(w, c, node, dst, q, lane(w, func(o ...Op) { VPCMPEQD(o...) }, func(o ...Op) { VPCMPEQQ(o...) }))
}

func (a avx2) belowHalf(w width, c consts, q query, node Mem, dst Register) {
	a.compareHalf(w, c, node, dst, q, lane(w, func(o ...Op) { VPCMPGTD(o...) }, func(o ...Op) { VPCMPGTQ(o...) }))
}

// compareHalf compares the key with those of half a line.
func (avx2) compareHalf(w width, c consts, node Mem, dst Register, q query, compare func(...Op)) {
	v := YMM()
	VPXOR(node, c.sign, v)
	compare(v, q.all, v)
	lane(w, func(o ...Op) { VMOVMSKPS(o[0], o[1]) }, func(o ...Op) { VMOVMSKPD(o[0], o[1]) })(v, as32(dst))
}

func (avx2) copyLine(dst, src Mem) {
	for half := range 2 {
		v := YMM()
		VMOVDQU(src.Offset(32*half), v)
		VMOVDQA(v, dst.Offset(32*half))
	}
}
