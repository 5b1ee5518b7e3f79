package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// number is a kind of values: package simd's Kind.
type number struct {
	name   string
	w      width
	float  bool
	signed bool
}

var valueKinds = []number{
	{"Int32", 32, false, true}, {"Uint32", 32, false, false}, {"Float32", 32, true, true},
	{"Int64", 64, false, true}, {"Uint64", 64, false, false}, {"Float64", 64, true, true},
}

// groupValues is the number of values that a round of a loop takes: simd.Lanes.
const groupValues = 32

func (k number) group() int { return groupValues * k.w.bytes() }

// Offsets of the fields of simd.lanes.
const (
	offSum  = 0
	offHigh = 256
	offMin  = 512
	offMax  = 576
)

// vectorOps emits the routines over values: summarize and within.
func vectorOps(isa vectors) {
	for _, k := range valueKinds {
		if isa.name() == "AVX512" {
			summarize512(k)
			within512(k)
		} else {
			summarize2(k)
			within2(k)
		}
	}
	if isa.name() == "AVX2" {
		unpackLines(32)
		unpackLines(64)
		halves()
	}
}

// summarizeBegin emits the head of a routine over groups of values.
func summarizeBegin(k number, isa string) (at, groups, out GPVirtual) {
	TEXT(fmt.Sprintf("summarize%s%s", k.name, isa), NOSPLIT, "func(vals *byte, groups int, out *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("Sets the lanes of groups of 32 values, at least one, as summarizeGo does for %s.", k.name))
	return Load(Param("vals"), GP64()).(GPVirtual), Load(Param("groups"), GP64()).(GPVirtual), Load(Param("out"), GP64()).(GPVirtual)
}

// next goes on to the next group.
func next(k number, at, groups GPVirtual, label string) {
	ADDQ(U32(uint32(k.group())), at)
	DECQ(groups)
	JNE(LabelRef(label))
}

// zeros returns n registers of zeros.
func zeros(n int, vec func() VecVirtual) []VecVirtual {
	out := make([]VecVirtual, n)
	for i := range out {
		out[i] = vec()
		if out[i].Size() == 64 {
			VPXORQ(out[i], out[i], out[i])
		} else {
			VPXOR(out[i], out[i], out[i])
		}
	}
	return out
}

func summarize512(k number) {
	at, groups, out := summarizeBegin(k, "AVX512")
	sum := zeros(4, ZMM)
	var high []VecVirtual
	if k.w == 64 && !k.float {
		high = zeros(4, ZMM)
	}
	top, least, greatest := ZMM(), []VecVirtual{ZMM(), ZMM()}, []VecVirtual{ZMM(), ZMM()}
	VPTERNLOGD(Imm(0xff), top, top, top)
	for i := range 2 {
		lane(k.w, func(o ...Op) { VPSRLD(o...) }, func(o ...Op) { VPSRLQ(o...) })(Imm(1), top, least[i])
		lane(k.w, func(o ...Op) { VPSLLD(o...) }, func(o ...Op) { VPSLLQ(o...) })(Imm(uint64(k.w-1)), top, greatest[i])
	}
	VMOVDQA64(greatest[0], top)
	Label("group")
	if k.w == 32 {
		for i := range 4 { // lanes of 64 bits
			v, from := ZMM(), Mem{Base: at, Disp: 32 * i}
			widen(k, from, v)
			add(k, v, sum[i])
		}
	}
	for i := range k.group() / 64 {
		v, code := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: at, Disp: 64 * i}, v)
		if k.w == 64 {
			add(k, v, sum[i])
		}
		switch {
		case k.float:
			lane(k.w, func(o ...Op) { VPSRAD(o...) }, func(o ...Op) { VPSRAQ(o...) })(Imm(uint64(k.w-1)), v, code)
			lane(k.w, func(o ...Op) { VPSRLD(o...) }, func(o ...Op) { VPSRLQ(o...) })(Imm(1), code, code)
			VPXORQ(v, code, code)
		case k.signed:
			code = v
		default:
			VPXORQ(top, v, code)
		}
		if high != nil {
			half := ZMM()
			if k.signed {
				VPXORQ(top, v, half)
				VPSRLQ(Imm(32), half, half)
			} else {
				VPSRLQ(Imm(32), v, half)
			}
			VPADDQ(half, high[i], high[i])
		}
		lane(k.w, func(o ...Op) { VPMINSD(o...) }, func(o ...Op) { VPMINSQ(o...) })(code, least[i%2], least[i%2])
		lane(k.w, func(o ...Op) { VPMAXSD(o...) }, func(o ...Op) { VPMAXSQ(o...) })(code, greatest[i%2], greatest[i%2])
	}
	next(k, at, groups, "group")
	lane(k.w, func(o ...Op) { VPMINSD(o...) }, func(o ...Op) { VPMINSQ(o...) })(least[1], least[0], least[0])
	lane(k.w, func(o ...Op) { VPMAXSD(o...) }, func(o ...Op) { VPMAXSQ(o...) })(greatest[1], greatest[0], greatest[0])
	for i, v := range sum {
		VMOVDQU64(v, Mem{Base: out, Disp: offSum + 64*i})
	}
	for i, v := range high {
		VMOVDQU64(v, Mem{Base: out, Disp: offHigh + 64*i})
	}
	VMOVDQU64(least[0], Mem{Base: out, Disp: offMin})
	VMOVDQU64(greatest[0], Mem{Base: out, Disp: offMax})
	VZEROUPPER()
	RET()
}

// widen loads values of 32 bits as 64 bits: floats as floats of double width.
func widen(k number, from Mem, to VecVirtual) {
	switch {
	case k.float:
		VCVTPS2PD(from, to)
	case k.signed:
		VPMOVSXDQ(from, to)
	default:
		VPMOVZXDQ(from, to)
	}
}

// add adds values of 64 bits to lanes.
func add(k number, v, to VecVirtual) {
	if k.float {
		VADDPD(v, to, to)
		return
	}
	VPADDQ(v, to, to)
}

func summarize2(k number) {
	at, groups, out := summarizeBegin(k, "AVX2")
	lanes := 2 // of integers, any number will do
	if k.float {
		lanes = 8
	}
	sum := zeros(lanes, YMM)
	var high []VecVirtual
	if k.w == 64 && !k.float {
		high = zeros(2, YMM)
	}
	least, greatest := []VecVirtual{YMM(), YMM()}, []VecVirtual{YMM(), YMM()}
	for i := range 2 {
		VPCMPEQD(least[i], least[i], least[i])
		lane(k.w, func(o ...Op) { VPSLLD(o...) }, func(o ...Op) { VPSLLQ(o...) })(Imm(uint64(k.w-1)), least[i], greatest[i])
		lane(k.w, func(o ...Op) { VPSRLD(o...) }, func(o ...Op) { VPSRLQ(o...) })(Imm(1), least[i], least[i])
	}
	var top VecVirtual
	if !k.float {
		top = YMM()
		VMOVDQA(greatest[0], top)
	}
	Label("group")
	if k.w == 32 {
		for i := range 8 {
			v := YMM()
			widen(k, Mem{Base: at, Disp: 16 * i}, v)
			add(k, v, sum[i%lanes])
		}
	}
	for i := range k.group() / 32 {
		v := YMM()
		VMOVDQU(Mem{Base: at, Disp: 32 * i}, v)
		if k.w == 64 {
			add(k, v, sum[i%lanes])
		}
		if high != nil {
			half := YMM()
			if k.signed {
				VPXOR(top, v, half)
				VPSRLQ(Imm(32), half, half)
			} else {
				VPSRLQ(Imm(32), v, half)
			}
			VPADDQ(half, high[i%2], high[i%2])
		}
		extremes2(k, ordered2(k, v, top), least[i%2], greatest[i%2])
	}
	next(k, at, groups, "group")
	spare := YMM()
	VMOVDQA(least[1], spare)
	extremes2(k, spare, least[0], nil)
	VMOVDQA(greatest[1], spare)
	extremes2(k, spare, nil, greatest[0])
	for i, v := range sum {
		VMOVDQU(v, Mem{Base: out, Disp: offSum + 32*i})
	}
	for i, v := range high {
		VMOVDQU(v, Mem{Base: out, Disp: offHigh + 32*i})
	}
	for half := range 2 {
		VMOVDQU(least[0], Mem{Base: out, Disp: offMin + 32*half})
		VMOVDQU(greatest[0], Mem{Base: out, Disp: offMax + 32*half})
	}
	VZEROUPPER()
	RET()
}

// ordered2 returns values as signed integers in the same order.
func ordered2(k number, v, top VecVirtual) VecVirtual {
	switch {
	case k.float:
		code := YMM()
		VPSRAD(Imm(31), v, code)
		if k.w == 64 {
			VPSHUFD(Imm(0xf5), code, code) // the upper half's sign in both
			VPSRLQ(Imm(1), code, code)
		} else {
			VPSRLD(Imm(1), code, code)
		}
		VPXOR(v, code, code)
		return code
	case k.signed:
		return v
	}
	VPXOR(top, v, v)
	return v
}

// extremes2 takes signed integers into account for the least and the greatest.
func extremes2(k number, code, least, greatest VecVirtual) {
	if k.w == 32 {
		if least != nil {
			VPMINSD(code, least, least)
		}
		if greatest != nil {
			VPMAXSD(code, greatest, greatest)
		}
		return
	}
	if least != nil {
		below := YMM()
		VPCMPGTQ(code, least, below)
		VBLENDVPD(below, code, least, least)
	}
	if greatest != nil {
		above := YMM()
		VPCMPGTQ(greatest, code, above)
		VBLENDVPD(above, code, greatest, greatest)
	}
}

// withinBegin emits the head of a routine that looks which values lie between two.
func withinBegin(k number, isa string) (at, groups, lo, hi, out GPVirtual) {
	TEXT(fmt.Sprintf("within%s%s", k.name, isa), NOSPLIT, "func(vals *byte, groups int, lo, hi uint64, out *uint32)")
	Pragma("noescape")
	Doc(fmt.Sprintf("Does what withinGo does for groups of 32 values of %s, at least one.", k.name))
	load := func(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }
	return load("vals"), load("groups"), load("lo"), load("hi"), load("out")
}

// Predicates of comparisons.
const (
	atLeast       = 5    // VPCMP: not less
	atMost        = 2    // VPCMP: less or equal
	atLeastFloats = 0x1d // VCMP: greater or equal, false for NaN
	atMostFloats  = 0x12 // VCMP: less or equal, false for NaN
)

func within512(k number) {
	at, groups, lo, hi, out := withinBegin(k, "AVX512")
	low, up := ZMM(), ZMM()
	if k.w == 32 {
		VPBROADCASTD(lo.As32(), low)
		VPBROADCASTD(hi.As32(), up)
	} else {
		VPBROADCASTQ(lo, low)
		VPBROADCASTQ(hi, up)
	}
	Label("group")
	per := 512 / int(k.w)
	all := GP64()
	for i := range k.group() / 64 {
		v, some, both, bits := ZMM(), K(), K(), GP64()
		VMOVDQU64(Mem{Base: at, Disp: 64 * i}, v)
		switch {
		case k.float && k.w == 32:
			VCMPPS(Imm(atLeastFloats), low, v, some)
			VCMPPS(Imm(atMostFloats), up, v, some, both)
		case k.float:
			VCMPPD(Imm(atLeastFloats), low, v, some)
			VCMPPD(Imm(atMostFloats), up, v, some, both)
		case k.w == 32 && k.signed:
			VPCMPD(Imm(atLeast), low, v, some)
			VPCMPD(Imm(atMost), up, v, some, both)
		case k.w == 32:
			VPCMPUD(Imm(atLeast), low, v, some)
			VPCMPUD(Imm(atMost), up, v, some, both)
		case k.signed:
			VPCMPQ(Imm(atLeast), low, v, some)
			VPCMPQ(Imm(atMost), up, v, some, both)
		default:
			VPCMPUQ(Imm(atLeast), low, v, some)
			VPCMPUQ(Imm(atMost), up, v, some, both)
		}
		mask16(k.w, both, bits)
		join(i*per, bits, all)
	}
	MOVL(all.As32(), Mem{Base: out})
	ADDQ(Imm(4), out)
	next(k, at, groups, "group")
	VZEROUPPER()
	RET()
}

// signs sets a bit for each lane whose top bit is set.
func signs(w width, v VecVirtual, to GPVirtual) {
	if w == 32 {
		VMOVMSKPS(v, to.As32())
		return
	}
	VMOVMSKPD(v, to.As32())
}

// join puts bits at a place of all; the first to be put there makes it.
func join(place int, bits, all GPVirtual) {
	if place == 0 {
		MOVL(bits.As32(), all.As32())
		return
	}
	SHLL(Imm(uint64(place)), bits.As32())
	ORL(bits.As32(), all.As32())
}

func within2(k number) {
	at, groups, lo, hi, out := withinBegin(k, "AVX2")
	low, up := YMM(), YMM()
	for i, from := range []GPVirtual{lo, hi} {
		x, to := XMM(), []VecVirtual{low, up}[i]
		if k.w == 32 {
			VMOVD(from.As32(), x)
			VPBROADCASTD(x, to)
		} else {
			VMOVQ(from, x)
			VPBROADCASTQ(x, to)
		}
	}
	var top VecVirtual
	if !k.float && !k.signed {
		top = avx2{}.prepare(k.w).sign
		VPXOR(top, low, low)
		VPXOR(top, up, up)
	}
	Label("group")
	per := 256 / int(k.w)
	all := GP64()
	for i := range k.group() / 32 {
		v, below, above, bits := YMM(), YMM(), YMM(), GP64()
		VMOVDQU(Mem{Base: at, Disp: 32 * i}, v)
		switch {
		case k.float && k.w == 32:
			VCMPPS(Imm(atLeastFloats), low, v, below)
			VCMPPS(Imm(atMostFloats), up, v, above)
			VPAND(below, above, above)
		case k.float:
			VCMPPD(Imm(atLeastFloats), low, v, below)
			VCMPPD(Imm(atMostFloats), up, v, above)
			VPAND(below, above, above)
		default:
			if top != nil {
				VPXOR(top, v, v)
			}
			lane(k.w, func(o ...Op) { VPCMPGTD(o...) }, func(o ...Op) { VPCMPGTQ(o...) })(v, low, below)
			lane(k.w, func(o ...Op) { VPCMPGTD(o...) }, func(o ...Op) { VPCMPGTQ(o...) })(up, v, above)
			VPOR(below, above, above)
		}
		signs(k.w, above, bits)
		join(i*per, bits, all)
	}
	if !k.float { // those outside have been found
		NOTL(all.As32())
	}
	MOVL(all.As32(), Mem{Base: out})
	ADDQ(Imm(4), out)
	next(k, at, groups, "group")
	VZEROUPPER()
	RET()
}

// unpackLines emits UnpackRegular's loop over lines. A line is copied whole, and the
// next one is written over the places that repeat its last entry.
func unpackLines(w width) {
	TEXT(fmt.Sprintf("unpackLeaf%d", w), NOSPLIT, "func(seps, lines *byte, n int, keys, vals *byte) int")
	Pragma("noescape")
	Doc("Does what UnpackRegular does in Go for n lines, at least one, none of which is the first of a leaf. keys may be nil.")
	seps, at, n := Load(Param("seps"), GP64()), Load(Param("lines"), GP64()), Load(Param("n"), GP64())
	keys, vals := Load(Param("keys"), GP64()), Load(Param("vals"), GP64())
	count := GP64()
	XORL(count.As32(), count.As32())
	var shift VecVirtual
	if w == 32 { // lanes 0, 0, 1, … 6
		shift = YMM()
		packed, x := GP64(), XMM()
		MOVQ(U64(0x0605040302010000), packed)
		VMOVQ(packed, x)
		VPMOVZXBD(x, shift)
	}
	per := w.keys() / 2
	for _, both := range []bool{true, false} {
		label := "values"
		if both {
			label = "both"
			TESTQ(keys, keys)
			JE(LabelRef("values"))
		}
		Label(label)
		ks, before, vs := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: at}, ks)
		VMOVDQU(Mem{Base: at, Disp: 32}, vs)
		if w == 32 {
			VPERMD(ks, shift, before)
			VPCMPEQD(ks, before, before)
		} else {
			VPERMQ(Imm(0x90), ks, before) // lanes 0, 0, 1, 2
			VPCMPEQQ(ks, before, before)
		}
		repeats, m, first, is := GP64(), GP64(), GP64(), GP64()
		signs(w, before, repeats)
		POPCNTL(repeats.As32(), repeats.As32())
		MOVL(U32(uint32(per+1)), m.As32())
		SUBL(repeats.As32(), m.As32())
		// None, where the first key is not one of the line's.
		XORL(is.As32(), is.As32())
		if w == 32 {
			MOVL(Mem{Base: at}, first.As32())
			CMPL(first.As32(), Mem{Base: seps, Disp: -w.bytes()})
		} else {
			MOVQ(Mem{Base: at}, first)
			CMPQ(first, Mem{Base: seps, Disp: -w.bytes()})
		}
		CMOVLLS(is.As32(), m.As32())
		if w == 32 {
			CMPL(first.As32(), Mem{Base: seps})
		} else {
			CMPQ(first, Mem{Base: seps})
		}
		CMOVLHI(is.As32(), m.As32())
		VMOVDQU(vs, Mem{Base: vals, Index: count, Scale: uint8(w.bytes())})
		if both {
			VMOVDQU(ks, Mem{Base: keys, Index: count, Scale: uint8(w.bytes())})
		}
		ADDQ(m, count)
		ADDQ(Imm(64), at)
		ADDQ(Imm(uint64(w.bytes())), seps)
		DECQ(n)
		JNE(LabelRef(label))
		if both {
			JMP(LabelRef("done"))
		}
	}
	Label("done")
	VZEROUPPER()
	Store(count, ReturnIndex(0))
	RET()
}

// fetchHalves is how far ahead of its copies the loop of halves asks for lines:
// as many as a core has under way at a time, and some more.
const fetchHalves = 24 * 64

// halves emits the routine that copies half lines.
func halves() {
	TEXT("copyHalves", NOSPLIT, "func(dst, src *byte, n int)")
	Pragma("noescape")
	Doc("Copies 32 bytes of each of n lines, at least one; src is where they are in the first.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("line")
	v := YMM()
	PREFETCHT0(Mem{Base: src, Disp: fetchHalves})
	VMOVDQU(Mem{Base: src}, v)
	VMOVDQU(v, Mem{Base: dst})
	ADDQ(Imm(64), src)
	ADDQ(Imm(32), dst)
	DECQ(n)
	JNE(LabelRef("line"))
	VZEROUPPER()
	RET()
}
