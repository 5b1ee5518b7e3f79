package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vectors is an instruction set: it tells how a node is compared with a key.
type vectors interface {
	name() string
	// prepare sets up what stays in registers for a whole routine.
	prepare(w width) consts
	// key loads the key searched for into every lane.
	key(w width, c consts, from Op) query
	// below sets a bit in dst for each key of the node that is below the key.
	below(w width, c consts, q query, node Mem, dst Register)
	// equal does the same for keys equal to it.
	equal(w width, c consts, q query, node Mem, dst Register)
	// belowPart is below for the 16 bytes at part (2 or 4 keys).
	belowPart(w width, c consts, q query, part Op, dst Register)

	// For regular trees: prepareIndex is prepare for routines that use it.
	prepareIndex(w width) consts
	// belowIndex is below for the separators in an index line.
	belowIndex(w width, c consts, q query, node Mem, dst Register)
	// belowMost is below for all keys of a node but the last.
	belowMost(w width, c consts, q query, node Mem, dst Register)
	// equalHalf is equal for the keys in the first half of a node.
	equalHalf(w width, c consts, q query, node Mem, dst Register)
	// belowHalf is below for these.
	belowHalf(w width, c consts, q query, node Mem, dst Register)
	// copyLine copies 64 bytes to a multiple of 64.
	copyLine(dst, src Mem)
}

// consts are registers that hold a constant of the routine.
type consts struct {
	sign VecVirtual // the top bit of every lane: AVX2 has signed comparisons only
	mask Register   // AVX-512 scratch mask

	index, most Register // AVX-512 masks of the lanes that belowIndex and belowMost look at
}

// query is a key in every lane; scalar holds it once, for Sequential.
type query struct {
	all VecVirtual
}

// lane picks an instruction by key width.
func lane(w width, d, q func(...Op)) func(...Op) {
	if w == 32 {
		return d
	}
	return q
}

type avx512 struct{}

func (avx512) name() string { return "AVX512" }

func (avx512) prepare(width) consts { return consts{mask: K()} }

func (avx512) key(w width, _ consts, from Op) query {
	q := query{all: ZMM()}
	lane(w, func(o ...Op) { VPBROADCASTD(o...) }, func(o ...Op) { VPBROADCASTQ(o...) })(from, q.all)
	return q
}

const notLessOrEqual = 6 // predicate of VPCMPU: key > node

func (avx512) below(w width, c consts, q query, node Mem, dst Register) {
	lane(w, func(o ...Op) { VPCMPUD(o...) }, func(o ...Op) { VPCMPUQ(o...) })(Imm(notLessOrEqual), node, q.all, c.mask)
	mask16(w, c.mask, dst)
}

func (avx512) equal(w width, c consts, q query, node Mem, dst Register) {
	lane(w, func(o ...Op) { VPCMPEQD(o...) }, func(o ...Op) { VPCMPEQQ(o...) })(node, q.all, c.mask)
	mask16(w, c.mask, dst)
}

func (avx512) belowPart(w width, c consts, q query, part Op, dst Register) {
	lane(w, func(o ...Op) { VPCMPUD(o...) }, func(o ...Op) { VPCMPUQ(o...) })(Imm(notLessOrEqual), part, q.all.(Vec).AsX(), c.mask)
	KMOVB(c.mask, as32(dst))
}

// mask16 moves a mask of 8 or 16 bits to a general register.
func mask16(w width, mask, dst Register) {
	if w == 32 {
		KMOVW(mask, as32(dst))
		return
	}
	KMOVB(mask, as32(dst))
}

type avx2 struct{}

func (avx2) name() string { return "AVX2" }

// prepare makes the sign bits: all ones, shifted up.
func (avx2) prepare(w width) consts {
	s := YMM()
	VPCMPEQD(s, s, s)
	if w == 32 {
		VPSLLD(Imm(31), s, s)
	} else {
		VPSLLQ(Imm(63), s, s)
	}
	return consts{sign: s}
}

func (avx2) key(w width, c consts, from Op) query {
	q := query{all: YMM()}
	if v, ok := from.(GPVirtual); ok { // AVX2 broadcasts from memory or a vector only
		x := XMM()
		if w == 32 {
			VMOVD(v.As32(), x)
		} else {
			VMOVQ(v, x)
		}
		from = x
	}
	if w == 32 {
		VPBROADCASTD(from, q.all)
	} else {
		VPBROADCASTQ(from, q.all)
	}
	VPXOR(c.sign, q.all, q.all)
	return q
}

func (a avx2) below(w width, c consts, q query, node Mem, dst Register) {
	a.halves(w, c, node, dst, func(half VecVirtual) {
		if w == 32 {
			VPCMPGTD(half, q.all, half)
		} else {
			VPCMPGTQ(half, q.all, half)
		}
	})
}

func (a avx2) equal(w width, c consts, q query, node Mem, dst Register) {
	a.halves(w, c, node, dst, func(half VecVirtual) {
		if w == 32 {
			VPCMPEQD(half, q.all, half)
		} else {
			VPCMPEQQ(half, q.all, half)
		}
	})
}

// halves compares the two halves of a node and joins the results.
func (avx2) halves(w width, c consts, node Mem, dst Register, compare func(VecVirtual)) {
	high := GP64()
	for i, to := range []Register{as32(dst), high.As32()} {
		v := YMM()
		VPXOR(node.Offset(32*i), c.sign, v)
		compare(v)
		if w == 32 {
			VMOVMSKPS(v, to)
		} else {
			VMOVMSKPD(v, to)
		}
	}
	SHLL(Imm(uint64(w.keys()/2)), high.As32())
	ORL(high.As32(), as32(dst))
}

func (avx2) belowPart(w width, c consts, q query, part Op, dst Register) {
	v := XMM()
	VPXOR(part, c.sign.(Vec).AsX(), v)
	if w == 32 {
		VPCMPGTD(v, q.all.(Vec).AsX(), v)
		VMOVMSKPS(v, as32(dst))
	} else {
		VPCMPGTQ(v, q.all.(Vec).AsX(), v)
		VMOVMSKPD(v, as32(dst))
	}
}

func as32(r Register) Register { return r.(GP).As32() }
