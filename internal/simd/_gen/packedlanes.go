package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes unpacks as many differences as a vector has lanes, from memory that
// may be read in one piece.
func (p *packer) lanes(row, at Register) VecVirtual {
	index, right := p.vector(), p.vector()
	p.load(Mem{Base: row, Disp: rowFirst}, index)
	p.load(Mem{Base: row, Disp: rowRight}, right)
	return p.pick(row, Mem{Base: at}, index, right)
}

// within does the same for differences that begin at address at and end at
// offset end, in bytes from at: it reads no line that holds none of them.
func (p *packer) within(row, at, end GPVirtual) VecVirtual {
	from, last, bits := GP64(), GP64(), GP64()
	size := 64
	if !p.is512() {
		size = 32
	}
	LEAQ(Mem{Base: at, Index: end, Scale: 1, Disp: -1}, last)
	ORQ(Imm(63), last) // the last byte of the last line
	SUBQ(Imm(uint64(size-1)), last)
	MOVQ(at, from)
	CMPQ(from, last)
	CMOVQHI(last, from)
	MOVL(at.As32(), bits.As32())
	SUBL(from.As32(), bits.As32())
	SHLL(Imm(3), bits.As32())
	index, right := p.vector(), p.vector()
	if p.is512() {
		VPBROADCASTD(bits.As32(), index)
	} else {
		x := XMM()
		VMOVD(bits.As32(), x)
		VPBROADCASTD(x, index)
	}
	VPADDD(Mem{Base: row, Disp: rowBit}, index, index)
	p.and(p.below, index, right)
	VPSRLD(Imm(5), index, index)
	return p.pick(row, Mem{Base: from}, index, right)
}

// pick takes the differences that begin at dword index, dropping the number of
// bits in right at their lower end. The dword after the last wraps around: a
// difference that ends with the last dword has no bits in it, and the bits read
// are masked off.
func (p *packer) pick(row Register, from Mem, index, right VecVirtual) VecVirtual {
	data, low, high, left := p.vector(), p.vector(), p.vector(), p.vector()
	p.load(from, data)
	VPERMD(data, index, low)
	VPADDD(p.one, index, index)
	VPERMD(data, index, high)
	VPSUBD(right, p.dword, left)
	VPSRLVD(right, low, low)
	VPSLLVD(left, high, high)
	if p.is512() {
		const orThenAnd = 0xa8 // (first | second) & third
		VPTERNLOGD(Imm(orThenAnd), Mem{Base: row, Disp: rowMask}, high, low)
		return low
	}
	VPOR(low, high, low)
	VPAND(Mem{Base: row, Disp: rowMask}, low, low)
	return low
}

func (p *packer) load(from Mem, v VecVirtual) {
	if p.is512() {
		VMOVDQU32(from, v)
		return
	}
	VMOVDQU(from, v)
}

func (p *packer) and(a, b, to VecVirtual) {
	if p.is512() {
		VPANDD(a, b, to)
		return
	}
	VPAND(a, b, to)
}

// both unpacks the 16 differences of a group, or of the separators, into one
// vector or two.
func (p *packer) both(row, at, bits GPVirtual, group bool) []VecVirtual {
	if !p.is512() {
		half := GP64()
		LEAQ(Mem{Base: at, Index: bits, Scale: 1}, half)
		if !group { // at most one line, which begins with them
			return []VecVirtual{p.lanes(row, at), p.lanes(row, half)}
		}
		all := p.span(bits)
		low := p.within(row, at, all)
		SUBQ(bits, all)
		return []VecVirtual{low, p.within(row, half, all)}
	}
	if !group {
		return []VecVirtual{p.lanes(row, at)}
	}
	return []VecVirtual{p.within(row, at, p.span(bits))}
}

// span returns the number of bytes in a group, at least 1.
func (p *packer) span(bits GPVirtual) GPVirtual {
	all := GP64()
	LEAQ(Mem{Base: bits, Index: bits, Scale: 1}, all)
	CMPQ(all, Imm(1))
	ADCQ(Imm(0), all)
	return all
}

func (p *packer) narrow(slot, at, bits, below, same GPVirtual, group, equal bool) {
	row, q := GP64(), p.vector()
	MOVQ(p.in(slot, slotRow), row)
	VPBROADCASTD(p.in(slot, slotD), q)
	v := p.both(row, at, bits, group)
	if p.is512() {
		k := K()
		VPCMPUD(Imm(notLessOrEqual), v[0], q, k)
		KMOVW(k, below.As32())
		if equal {
			VPCMPEQD(v[0], q, k)
			KMOVW(k, same.As32())
		}
		return
	}
	part := GP64()
	VPXOR(p.sign.sign, q, q)
	for i, to := range []GPVirtual{below, part} {
		VPXOR(p.sign.sign, v[i], v[i])
		r := YMM()
		VPCMPGTD(v[i], q, r)
		VMOVMSKPS(r, to.As32())
	}
	SHLL(Imm(8), part.As32())
	ORL(part.As32(), below.As32())
	if equal {
		VPCMPEQD(v[0], q, v[0])
		VPCMPEQD(v[1], q, v[1])
		VPOR(v[0], v[1], v[0])
		VMOVMSKPS(v[0], same.As32())
	}
}

// broad compares differences of 64 bits, a vector at a time.
func (p *packer) broad(slot, at, below, same GPVirtual, equal bool) {
	q := p.isa.key(64, p.sign64with(), p.in(slot, slotD))
	part := GP64()
	for i, to := range []GPVirtual{below, part} {
		p.isa.below(64, p.sign64with(), q, Mem{Base: at, Disp: 64 * i}, to)
	}
	SHLL(Imm(8), part.As32())
	ORL(part.As32(), below.As32())
	if !equal {
		return
	}
	p.isa.equal(64, p.sign64with(), q, Mem{Base: at}, same)
	p.isa.equal(64, p.sign64with(), q, Mem{Base: at, Disp: 64}, part)
	ORL(part.As32(), same.As32())
}

func (p *packer) sign64with() consts {
	if p.is512() {
		return p.sign
	}
	return p.sign64
}

// unpack emits a routine that turns groups of differences into keys.
func unpack(isa vectors, w width) {
	TEXT(fmt.Sprintf("unpack%d%s", w, isa.name()), NOSPLIT, "func(at *byte, row *byte, least uint64, groups int, size uint64, dst *byte)")
	Pragma("noescape")
	Doc("Does what Unpack does in Go for groups of size bytes; groups must be at least 1.")
	p := &packer{isa: isa, w: w}
	p.constants()
	at, row := Load(Param("at"), GP64()), Load(Param("row"), GP64())
	least := Load(Param("least"), GP64()).(GPVirtual)
	groups, size, dst := Load(Param("groups"), GP64()), Load(Param("size"), GP64()), Load(Param("dst"), GP64())
	half := GP64()
	MOVQ(size, half)
	SHRQ(Imm(1), half)
	var base VecVirtual = YMM()
	if p.is512() {
		base = ZMM()
	}
	x := XMM()
	VMOVQ(least, x)
	if w == 32 {
		VPBROADCASTD(x, base)
	} else {
		VPBROADCASTQ(x, base)
	}
	Label("group")
	if p.is512() {
		p.store(p.lanes(row, at), base, dst, 0)
	} else {
		second := GP64()
		LEAQ(Mem{Base: at, Index: half, Scale: 1}, second)
		p.store(p.lanes(row, at), base, dst, 0)
		p.store(p.lanes(row, second), base, dst, 8*w.bytes())
	}
	ADDQ(size, at)
	ADDQ(Imm(uint64(16*w.bytes())), dst)
	DECQ(groups)
	JNE(LabelRef("group"))
	finish()
}

// store adds base to a vector of differences and stores the keys.
func (p *packer) store(v, base VecVirtual, dst Register, offset int) {
	to := Mem{Base: dst, Disp: offset}
	if p.w == 32 {
		VPADDD(base, v, v)
		p.move(v, to)
		return
	}
	if p.is512() {
		low, high, upper := ZMM(), ZMM(), YMM()
		VEXTRACTI64X4(Imm(1), v, upper)
		VPMOVZXDQ(v.AsY(), low)
		VPMOVZXDQ(upper, high)
		VPADDQ(base, low, low)
		VPADDQ(base, high, high)
		p.move(low, to)
		p.move(high, to.Offset(64))
		return
	}
	low, high, upper := YMM(), YMM(), XMM()
	VEXTRACTI128(Imm(1), v, upper)
	VPMOVZXDQ(v.AsX(), low)
	VPMOVZXDQ(upper, high)
	VPADDQ(base, low, low)
	VPADDQ(base, high, high)
	p.move(low, to)
	p.move(high, to.Offset(32))
}

func (p *packer) move(v VecVirtual, to Mem) {
	if p.is512() {
		VMOVDQU64(v, to)
		return
	}
	VMOVDQU(v, to)
}
